// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stored_state.h"

#include <fmt/format.h>

#include <utility>

#include "batchloom/control/stream_settings.h"
#include "batchloom/store/committed_state.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/manifest_reader.h"

namespace batchloom::control {
namespace {

/// The head by which `step` was committed, or a newer one that says the same; nullopt where it is
/// gone, or not there yet.
Result<std::optional<store::HeadPtr>> head_with(const store::Stream& stream, store::Step step,
                                                const CallOptions& call) {
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(store::HeadPtr found, reader.latest(call));
  if (found->head.next_step <= step) return std::optional<store::HeadPtr>();
  BL_ASSIGN_OR_RETURN(store::Slot below, store::read_floor(stream, call));
  bool is_first = false;  // Whether the head before it is there, and lacks the step.
  while (found->head.slot > below + 1) {
    const store::Slot middle = below + (found->head.slot - below) / 2;
    BL_ASSIGN_OR_RETURN(const std::optional<store::HeadPtr> head, reader.at(middle, call));
    if (head && (*head)->head.next_step > step) {
      found = *head;
    } else {
      below = middle;  // The floor may have come up to it meanwhile.
      is_first = head.has_value();
    }
  }
  if (is_first || found->head.next_step == step + 1) return std::optional(found);
  return std::optional<store::HeadPtr>();
}

}  // namespace

Result<std::optional<PipelineState>> read_pipeline_state(const store::Stream& stream,
                                                         const store::Head& head,
                                                         const CallOptions& call) {
  const store::ProducerRow* row = head.find_producer(kPipelineProducer);
  if (row == nullptr || row->next_seq == store::Seq(0)) return std::optional<PipelineState>();
  BL_ASSIGN_OR_RETURN(const auto bytes, store::committed_state(stream, *row, call));
  if (!bytes) return std::optional<PipelineState>();
  Result<PipelineState> state = decode_pipeline_state(*bytes);
  if (state.is_ok()) return std::optional(*std::move(state));
  return Status(
      state.status().kind(),
      fmt::format("producer {}: {}; did something else than a pipeline write this stream?",
                  kPipelineProducer, state.status().message()));
}

Result<std::optional<StoredState>> find_stored_state(const store::Stream& stream, store::Step step,
                                                     const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const std::optional<store::HeadPtr> head, head_with(stream, step, call));
  if (!head) return std::optional<StoredState>();
  BL_ASSIGN_OR_RETURN(auto state, read_pipeline_state(stream, (*head)->head, call));
  if (!state) return std::optional<StoredState>();
  return std::optional(StoredState{(*head)->head.next_step, *std::move(state)});
}

}  // namespace batchloom::control
