// SPDX-License-Identifier: Apache-2.0
#include "cli/state_place.h"

#include <fmt/format.h>

#include "batchloom/client/state_text.h"
#include "batchloom/simulator/input_file.h"

namespace batchloom::cli {
namespace {

/// Far longer than any state, and short enough for whatever is named by mistake.
constexpr std::size_t kSavedMaxBytes = 4096;

Status refused_file(const std::string& path, const Status& why) {
  return Status(why.kind(),
                fmt::format("{}: {}. Its file is to hold the bytes of batch.state and nothing "
                            "else, as Path(...).write_bytes(batch.state) writes it",
                            path, why.message()));
}

Result<client::ConsumerState> read_saved(const std::string& path) {
  Result<std::string> text = simulator::read_text_file(path, kSavedMaxBytes);
  if (text.is(ErrorKind::kInvalid)) return refused_file(path, text.status());
  if (!text.is_ok()) return text.status();
  if (text->ends_with('\n')) text->pop_back();  // As an editor leaves it.
  const Result<client::ConsumerState> state = client::parse_state(*text);
  return state.is_ok() ? state : refused_file(path, state.status());
}

/// As a consumer that resumes from it sees to it.
Status check_saved(const client::ConsumerState& saved, const store::Stream& stream,
                   const store::Head& head, const CallOptions& call) {
  if (saved.stream != stream.uuid()) {
    return Status::invalid(fmt::format("it is of stream {}, and this is stream {}",
                                       saved.stream.to_string(), stream.uuid().to_string()));
  }
  if (!saved.last) return Status::ok();
  return client::check_delivered(stream, head, *saved.last, call);
}

Status check_committed(store::Step step, const store::Head& head) {
  if (step < head.next_step) return Status::ok();
  return Status::not_found(
      fmt::format("step {} is not committed yet: the stream ends before step {}", step.value,
                  head.next_step.value));
}

Status check_there(store::Step next_step, const store::Head& head) {
  if (next_step < head.first_step) {
    return Status::not_found(
        fmt::format("step {} comes next, and was trimmed: the stream begins "
                    "at step {}",
                    next_step.value, head.first_step.value));
  }
  return next_step == store::Step(0) ? Status::ok() : check_committed(next_step - 1, head);
}

}  // namespace

Result<StatePlace> find_place(const StatePoint& point, const store::Stream& stream,
                              const store::Head& head, const CallOptions& call) {
  StatePlace place;
  if (point.step) {
    BL_RETURN_IF_ERROR(check_committed(*point.step, head));
    place.next_step = *point.step + 1;
  }
  if (point.is_file()) {
    BL_ASSIGN_OR_RETURN(place.saved, read_saved(point.text));
    const Status fits = check_saved(*place.saved, stream, head, call);
    if (!fits.is_ok()) return fits.with_context(point.text);
    place.next_step = place.saved->next_step;
  }
  const Status there = check_there(place.next_step, head);
  if (there.is_ok()) return place;
  return point.is_file() ? there.with_context(point.text) : there;
}

Result<std::vector<std::string>> source_names(
    const std::optional<control::RecordedSettings>& settings, const control::PipelineState& state) {
  const std::size_t count = state.planner.mixture.sources.size();
  std::vector<std::string> names;
  if (!settings) {
    for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return names;
  }
  BL_ASSIGN_OR_RETURN(names, settings->settings.sources());
  if (names.size() == count && settings->settings.digest() == state.membership) return names;
  return Status::corruption(fmt::format(
      "a pipeline's state was made by other settings (digest {}, {} sources) than the "
      "stream says (digest {}, {} sources); see `batchloom store verify`",
      state.membership.to_string(), count, settings->settings.digest().to_string(), names.size()));
}

std::string name_of(model::SourceId source, std::span<const std::string> names) {
  return source.value < names.size() ? names[source.value] : std::to_string(source.value);
}

Status check_made_by_pipeline(const store::Entry& entry) {
  if (entry.producer == control::kPipelineProducer) return Status::ok();
  return Status::invalid(fmt::format(
      "step {} was committed by producer {}, which is no pipeline ({} is what `batchloom run` "
      "commits as): no state of sources stands beside it; `batchloom store show --step={}` tells "
      "what it holds",
      entry.first_step.value, entry.producer, control::kPipelineProducer, entry.first_step.value));
}

}  // namespace batchloom::cli
