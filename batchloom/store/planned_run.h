// SPDX-License-Identifier: Apache-2.0
// A run, beside the plan that it was built from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/store/batch_index.h"
#include "batchloom/store/run.h"

namespace batchloom::store {

/// The events of each rank of `plan`, in its order. Precondition: check_plan() accepts it.
std::vector<std::vector<RunEvent>> events_by_rank(const model::StepPlan& plan);

/// In what `run` is not as its object's index says: digests, micro-batches, rings, offload, each
/// piece with its CRC, flags and tensors. `events` are those of its rank. nullopt: in nothing.
std::optional<std::string> difference_from_index(const Run& run, const BatchIndex& index,
                                                 std::span<const RunEvent> events);

/// Labels of the piece that count.
std::uint64_t counted_labels(const RunPiece& piece);

}  // namespace batchloom::store
