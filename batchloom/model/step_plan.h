// SPDX-License-Identifier: Apache-2.0
// A StepPlan says everything about one optimizer step, from planner to GPU: nothing downstream
// derives a length, an owner or an order again.
//
//   samples   what the step trains on, in the planner's order
//   pieces    who holds which tokens of them: rank by rank, micro-batch by micro-batch, in the
//   order
//             in which a batch object stores them
//   ranks         -> range of micro_batches, in the order in which the rank runs them
//   micro_batches -> range of pieces, and the task they belong to
//   tasks         -> range of members: the ranks that run it together, in ring order
//   events    the one total order in which tasks go forward and backward; each rank follows its
//   part
//
// With pipeline stages (extent P of axis pp) the events are those of the last stage, and the other
// stages follow from the order of the tasks. Each task has a slot: the first one after the slots of
// all that its members run before it. Stage p goes forward with the next task while that one's slot
// is less than P - p after the slot of the next task to go backward, and else goes backward: 1F1B.
// So the last stage takes each task forward and at once backward, as the events say. All members of
// a task see the same slots, so that no stage waits for itself.
//
// A task is one gang: each member runs exactly one micro-batch of it. A whole sample, or a pack of
// them, on one rank is a task with one member. A micro-batch without pieces is a filler: it runs
// one token whose mask is 0, so that collectives match.
//
// The vectors are flat, and the ranges of consecutive owners follow each other without gaps, so
// that a plan is cheap to store, to walk and to check (plan_check.h says what makes one valid).
// Digest: plan_digest.h. Stored form: plan_codec.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batchloom/model/ids.h"
#include "batchloom/model/topology.h"

namespace batchloom::model {

/// A place in StepPlan::samples.
using SampleIndex = StrongInt<struct SampleIndexTag, std::uint32_t>;
/// A place in StepPlan::tasks.
using TaskIndex = StrongInt<struct TaskIndexTag, std::uint32_t>;
/// The share of a micro-batch's activations that is copied to the host, in 1/65,536.
using OffloadRatio = StrongInt<struct OffloadRatioTag, std::uint32_t>;
inline constexpr OffloadRatio kOffloadAll{65'536};

/// Places [begin, end) of another vector.
struct IndexRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// A member of the step.
struct PlanSample {
  SampleId id;
  std::uint32_t tokens = 0;          ///< At least 1.
  std::uint32_t valid_labels = 0;    ///< After the shift by one; at most `tokens`.
  std::uint64_t first_position = 0;  ///< The position, in the record, of the sample's token 0.

  friend bool operator==(const PlanSample&, const PlanSample&) = default;
};

/// Tokens [lo, hi) of a sample, not empty. Their positions are first_position + lo and onward.
struct Piece {
  SampleIndex sample;
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;

  std::uint32_t tokens() const { return hi - lo; }
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// What one rank runs in one forward pass. Positions within a piece grow; a rank of a ring holds
/// several pieces of one sample.
struct MicroBatch {
  TaskIndex task;
  IndexRange pieces;

  friend bool operator==(const MicroBatch&, const MicroBatch&) = default;
};

/// A gang.
struct Task {
  IndexRange members;
  OffloadRatio offload;       ///< Of each member's micro-batch.
  std::uint64_t cost_ns = 0;  ///< Predicted time of both phases on each member, without waiting.

  friend bool operator==(const Task&, const Task&) = default;
};

/// Values are part of the plan format.
enum class Phase : std::uint8_t { kForward = 0, kBackward = 1 };

/// One phase of one task.
struct Event {
  TaskIndex task;
  Phase phase = Phase::kForward;

  friend bool operator==(const Event&, const Event&) = default;
};

/// Which lower bound is the largest. Values are part of the plan format.
enum class BoundTerm : std::uint8_t {
  kNone = 0,     ///< No bound was computed.
  kWork = 1,     ///< All work, spread evenly over all ranks.
  kLongest = 2,  ///< One sample, on the number of ranks that suits it best.
};

/// The plan of one step. A value; it does not know the step's number, which the commit assigns.
struct StepPlan {
  Topology topology;
  std::string strategy;  ///< The name of the balance that made it: "hdp", "lpt", ...
  std::vector<PlanSample> samples;
  std::vector<Piece> pieces;
  std::vector<MicroBatch> micro_batches;
  std::vector<IndexRange> ranks;  ///< By HdpRank.
  std::vector<Task> tasks;        ///< In the order of their forward events.
  std::vector<HdpRank> members;
  std::vector<Event> events;
  std::uint64_t global_valid_labels = 0;  ///< The loss's denominator: the sum over all samples.
  std::uint64_t lower_bound_ns = 0;       ///< No plan of this step can be faster.
  BoundTerm bound_term = BoundTerm::kNone;
  std::uint64_t makespan_ns = 0;  ///< Predicted time of the slowest rank.
  std::uint64_t digest = 0;       ///< plan_digest() of the fields above.

  friend bool operator==(const StepPlan&, const StepPlan&) = default;

  // Views. Precondition: the ranges lie inside their vectors (check_plan_structure).
  std::span<const MicroBatch> micro_batches_of(HdpRank rank) const {
    return view(micro_batches, ranks[rank.value]);
  }
  std::span<const Piece> pieces_of(const MicroBatch& micro_batch) const {
    return view(pieces, micro_batch.pieces);
  }
  std::span<const HdpRank> members_of(const Task& task) const {
    return view(members, task.members);
  }

 private:
  template <class T>
  static std::span<const T> view(const std::vector<T>& of, IndexRange range) {
    return std::span(of).subspan(range.begin, range.size());
  }
};

}  // namespace batchloom::model
