// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/delivered_step.h"

#include <fmt/format.h>

#include "batchloom/base/log.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/run.h"
#include "batchloom/store/segment_reader.h"

namespace batchloom::client {
namespace {

/// Precondition: the head holds the step.
Result<std::uint64_t> stored_digest(const store::Stream& stream, const store::Head& head,
                                    store::Step step, const CallOptions& call) {
  store::SegmentReader segments(stream);
  BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head, step, call));
  store::BatchReader batches(stream);
  BL_ASSIGN_OR_RETURN(const auto index, batches.read_index(entry, call));
  return store::samples_digest(index->steps[step - entry.first_step].plan.samples);
}

}  // namespace

Status check_delivered(const store::Stream& stream, const store::Head& head,
                       const DeliveredStep& delivered, const CallOptions& call) {
  const store::Step step = delivered.step;
  if (step < head.first_step) return Status::ok();
  if (step >= head.next_step) {
    return Status::invalid(fmt::format(
        "the state has seen step {}, and stream {} ends before step {} (slot {}): was the stream "
        "set back, or is it a copy that was made before?",
        step.value, stream.uuid().to_string(), head.next_step.value, head.slot.value));
  }
  const Result<std::uint64_t> stored = stored_digest(stream, head, step, call);
  if (stored.is(ErrorKind::kCorruption) || stored.is(ErrorKind::kNotFound)) {
    log_warning(fmt::format("step {}, which the state has seen, cannot be compared with it: {}",
                            step.value, stored.status().to_string()));
    return Status::ok();
  }
  BL_RETURN_IF_ERROR(stored.status());
  if (*stored == delivered.samples_digest) return Status::ok();
  return Status::invalid(fmt::format(
      "the state has seen step {} with samples of digest {:016x}, and step {} of stream {} has "
      "samples of digest {:016x}: the stream has another history than the one the state is of; "
      "is it a copy that went on by itself, or was it set back?",
      step.value, delivered.samples_digest, step.value, stream.uuid().to_string(), *stored));
}

}  // namespace batchloom::client
