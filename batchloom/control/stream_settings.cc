// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stream_settings.h"

#include <fmt/format.h>

#include "batchloom/control/pipeline_state.h"
#include "batchloom/store/committed_state.h"
#include "batchloom/store/manifest_reader.h"

namespace batchloom::control {
namespace {

Status check_change(const StreamSettings& settings, std::optional<store::Step> change_from,
                    const Hash128& before, const Hash128& now) {
  if (!settings.changed && !change_from) return Status::ok();
  if (!settings.changed) {
    return Status::invalid(
        "no setting that decides what steps hold has changed; leave out --change-from");
  }
  if (!change_from) {
    return Status::invalid(fmt::format(
        "the stream was made by other settings of what steps hold (digest {}, now {}): seed, "
        "sources, their files, weights, [step] or [tokens]; go on with those, use another stream, "
        "or have the change hold from its next step on: --change-from={}",
        before.to_string(), now.to_string(), settings.next_step.value));
  }
  if (*change_from == settings.next_step) return Status::ok();
  return Status::invalid(fmt::format(
      "settings can change from the stream's next step on, which is {}, and not from step {}",
      settings.next_step.value, change_from->value));
}

}  // namespace

Result<StreamSettings> compare_settings(const store::Stream& stream, const Membership& membership,
                                        std::optional<store::Step> change_from,
                                        const CallOptions& call) {
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  StreamSettings settings{.next_step = head->head.next_step};
  Hash128 before = membership.digest();
  const store::ProducerRow* row = head->head.find_producer(kPipelineProducer);
  if (row != nullptr && row->next_seq > store::Seq(0)) {
    BL_ASSIGN_OR_RETURN(const auto bytes, store::committed_state(stream, *row, call));
    if (!bytes) return settings;  // Somebody goes on with it now: the session will see.
    const Result<PipelineState> state = decode_pipeline_state(*bytes);
    if (!state.is_ok()) {
      return Status(state.status().kind(),
                    fmt::format("producer {}: {}; did something else than a pipeline write this "
                                "stream?",
                                kPipelineProducer, state.status().message()));
    }
    before = state->membership;
  }
  settings.changed = before != membership.digest();
  BL_RETURN_IF_ERROR(check_change(settings, change_from, before, membership.digest()));
  return settings;
}

}  // namespace batchloom::control
