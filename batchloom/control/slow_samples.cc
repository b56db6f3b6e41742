// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/slow_samples.h"

#include <fmt/format.h>

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

Status SlowSamples::look(std::span<const OrderOutPtr> orders, Time now) {
  std::vector<Standing> standing;
  for (const OrderOutPtr& order : orders) standing.push_back({order, order->place.look()});
  const auto warn = [&](const auto& seen) {
    log_warning(fmt::format("step {} waits for {} for {:.1f} s", seen.item.order->order.step.value,
                            describe(*seen.item.order), seconds_of(seen.waited)));
  };
  const auto* seen = looks_.look(std::move(standing), now, warn);
  if (seen == nullptr) return Status::ok();
  Status late = Status::unavailable(fmt::format(
      "loading step {}: {} for {:.1f} s: no more than {:.1f} s is waited; is its storage there?",
      seen->item.order->order.step.value, describe(*seen->item.order), seconds_of(seen->waited),
      seconds_of(options_.sample_max)));
  // Now: whoever gets the error first waits for the thread that hangs.
  log_error(late.message());
  return late;
}

}  // namespace batchloom::control
