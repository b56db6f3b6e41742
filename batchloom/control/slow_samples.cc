// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/slow_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "batchloom/base/log.h"

namespace batchloom::control {
namespace {

std::string_view stage_text(FetchStage stage) {
  switch (stage) {
    case FetchStage::kBegin: return "before its shard is opened";
    case FetchStage::kOpen: return "opening its shard";
    case FetchStage::kRead: return "reading its record";
    case FetchStage::kReadMany: return "reading it with its neighbours";
    case FetchStage::kCopy: return "copying it from the index";
    case FetchStage::kPicture: return "reading its picture";
    case FetchStage::kCheck: return "looking whether its shard has changed";
  }
  return "";
}

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string SlowSamples::describe(const OrderOut& out) const {
  const FetchPlace::Look place = out.place.look();
  const std::size_t source = out.order.source.value;
  const std::string name = source < options_.source_names.size() ? options_.source_names[source]
                                                                 : std::to_string(source);
  const std::string sample = place.sample < out.order.samples.size()
                                 ? to_string(out.order.samples[place.sample].id)
                                 : "none";
  return fmt::format("sample {} of source '{}', {}", sample, name, stage_text(place.stage));
}

Duration SlowSamples::counted_since_last(Time now) const {
  // Twice: on a busy machine a look comes late.
  return std::min<Duration>(now - looked_, 2 * look_every());
}

Status SlowSamples::judge(Seen& seen) const {
  const std::uint64_t step = seen.order->order.step.value;
  if (seen.waited >= options_.sample_max) {
    Status late = Status::unavailable(fmt::format(
        "loading step {}: {} for {:.1f} s: no more than {:.1f} s is waited; is its storage there?",
        step, describe(*seen.order), seconds_of(seen.waited), seconds_of(options_.sample_max)));
    // Now: whoever gets the error first waits for the thread that hangs.
    log_error(late.message());
    return late;
  }
  if (seen.waited >= options_.slow_after && !std::exchange(seen.said, true)) {
    log_warning(fmt::format("step {} waits for {} for {:.1f} s", step, describe(*seen.order),
                            seconds_of(seen.waited)));
  }
  return Status::ok();
}

Status SlowSamples::look(std::span<const OrderOutPtr> orders, Time now) {
  const Duration passed = counted_since_last(now);
  looked_ = now;
  std::vector<Seen> still;
  for (const OrderOutPtr& order : orders) {
    const FetchPlace::Look place = order->place.look();
    const auto before = std::ranges::find(seen_, order, &Seen::order);
    if (before != seen_.end() && before->place == place) {
      still.push_back(std::move(*before));
      still.back().waited += passed;
      before->order = nullptr;
    } else {
      still.push_back({.order = order, .place = place});
    }
  }
  seen_ = std::move(still);
  for (Seen& seen : seen_) BL_RETURN_IF_ERROR(judge(seen));
  return Status::ok();
}

}  // namespace batchloom::control
