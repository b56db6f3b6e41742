// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stream_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "batchloom/control/stored_state.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/membership.h"

namespace batchloom::control {
namespace {

/// By which settings the last batch of the pipeline was made; nullopt where there is none.
Result<std::optional<Hash128>> committed_settings(const store::Stream& stream,
                                                  const store::Head& head,
                                                  const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto state, read_pipeline_state(stream, head, call));
  if (!state) return std::optional<Hash128>();  // Or somebody goes on with it now: that is seen.
  return std::optional(state->membership);
}

Status check_change(store::Step next_step, const RecordedSettings& recorded, const Membership& now,
                    std::optional<store::Step> change_from) {
  if (recorded.settings == now) {
    // Whoever is started again with the same command goes on with the change it made.
    if (!change_from || *change_from == recorded.from_step) return Status::ok();
    return Status::invalid(fmt::format(
        "no setting that decides what steps hold has changed; these hold from step {} on: leave "
        "out --change-from",
        recorded.from_step.value));
  }
  if (!change_from) {
    const bool is_empty = next_step == store::Step(0);
    return Status::invalid(fmt::format(
        "the stream {} by other settings of what steps hold:\n  {}\n{}: --change-from={}",
        is_empty ? "holds no step yet, and was begun" : "was made",
        fmt::join(differences(recorded.settings, now), "\n  "),
        is_empty ? "use another stream, or have these hold instead"
                 : "go on with those, use another stream, or have the change hold from its next "
                   "step on",
        next_step.value));
  }
  if (*change_from == next_step) return Status::ok();
  const bool is_later = *change_from > next_step;
  return Status::invalid(fmt::format(
      "settings can change from the stream's next step on, which is {}, and not from step {}{}",
      next_step.value, change_from->value,
      is_later ? "; a weight that is to change later is a schedule: weight = [{ step = ..., value "
                 "= ... }, ...]"
               : ""));
}

}  // namespace

Result<std::optional<RecordedSettings>> read_settings(const store::Stream& stream, store::Step step,
                                                      const CallOptions& call) {
  const Result<store::Membership> stored = store::read_membership(stream, step, call);
  if (stored.is(ErrorKind::kNotFound)) return std::optional<RecordedSettings>();
  if (!stored.is_ok()) return stored.status();
  Result<Membership> settings = decode_membership(stored->keys);
  if (!settings.is_ok()) {
    return settings.status().with_context(
        fmt::format("what the stream says of step {}", step.value));
  }
  return std::optional(RecordedSettings{stored->from_step, *std::move(settings)});
}

Result<StreamSettings> compare_settings(const store::Stream& stream, const Membership& membership,
                                        std::optional<store::Step> change_from,
                                        const CallOptions& call) {
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  const store::Step next_step = head->head.next_step;
  StreamSettings settings{.next_step = next_step};
  BL_ASSIGN_OR_RETURN(const auto committed, committed_settings(stream, head->head, call));
  BL_ASSIGN_OR_RETURN(const auto recorded, read_settings(stream, next_step, call));
  const RecordedSettings fresh{next_step, membership};
  BL_RETURN_IF_ERROR(
      check_change(next_step, recorded ? *recorded : fresh, membership, change_from));
  settings.is_recorded = recorded && recorded->settings == membership;
  if (!committed || *committed == membership.digest()) return settings;
  BL_ASSIGN_OR_RETURN(auto last, read_settings(stream, next_step - 1, call));
  if (!last || last->settings.digest() != *committed) {
    return Status::corruption(fmt::format(
        "the last batch was made by other settings (digest {}) than the stream says of step {}; "
        "see `batchloom store verify`",
        committed->to_string(), next_step.value - 1));
  }
  settings.before = std::move(last->settings);
  return settings;
}

}  // namespace batchloom::control
