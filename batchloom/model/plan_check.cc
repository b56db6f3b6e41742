// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace batchloom::model {
namespace {

/// A piece, and where it lies.
struct PlacedPiece {
  std::uint32_t lo;
  std::uint32_t hi;
  HdpRank rank;
  TaskIndex task;
};

/// Pieces by sample: a counting sort into one vector.
class PiecesBySample {
 public:
  explicit PiecesBySample(const StepPlan& plan) : begins_(plan.samples.size() + 1, 0) {
    for (const Piece& piece : plan.pieces) ++begins_[piece.sample.value + 1];
    for (std::size_t i = 0; i < plan.samples.size(); ++i) begins_[i + 1] += begins_[i];
    pieces_.resize(begins_.back());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
      for (const MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
        for (const Piece& piece : plan.pieces_of(micro_batch)) {
          pieces_[next[piece.sample.value]++] = {piece.lo, piece.hi, rank, micro_batch.task};
        }
      }
    }
  }

  std::span<PlacedPiece> operator[](std::size_t sample) {
    return std::span(pieces_).subspan(begins_[sample], begins_[sample + 1] - begins_[sample]);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<PlacedPiece> pieces_;
};

Status listed_twice(const SampleId& id) {
  return Status::invalid(fmt::format("sample {} is listed twice", to_string(id)));
}

Status check_ids_by_sorting(const StepPlan& plan) {
  std::vector<SampleId> ids;
  ids.reserve(plan.samples.size());
  for (const PlanSample& sample : plan.samples) ids.push_back(sample.id);
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  return twice == ids.end() ? Status::ok() : listed_twice(*twice);
}

/// In one look where ids ascend, as planners leave them. Else by a hash table, which takes a
/// fraction of the time that sorting does. A hostile plan may be made of ids that hash alike: that
/// one is sorted.
Status check_ids(const StepPlan& plan) {
  const auto disordered = std::ranges::adjacent_find(
      plan.samples, [](const PlanSample& a, const PlanSample& b) { return !(a.id < b.id); });
  if (disordered == plan.samples.end()) return Status::ok();
  constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();
  constexpr int kProbesMost = 128;
  const std::vector<PlanSample>& samples = plan.samples;
  std::vector<std::uint32_t> table(std::bit_ceil(2 * samples.size()), kFree);
  for (std::uint32_t i = 0; i < samples.size(); ++i) {
    std::size_t place = hash_of(samples[i].id) & (table.size() - 1);
    for (int probes = 0; table[place] != kFree; ++probes) {
      if (samples[table[place]].id == samples[i].id) return listed_twice(samples[i].id);
      if (probes == kProbesMost) return check_ids_by_sorting(plan);
      place = (place + 1) & (table.size() - 1);
    }
    table[place] = i;
  }
  return Status::ok();
}

/// Whether `pieces`, ordered by `lo`, tile the sample and lie in one task.
Status check_sample(const PlanSample& sample, std::span<const PlacedPiece> pieces) {
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const PlacedPiece& piece = pieces[i];
    if (piece.lo > end) {
      return Status::invalid(fmt::format("tokens [{}, {}) of sample {} are on no rank", end,
                                         piece.lo, to_string(sample.id)));
    }
    if (piece.lo < end) {
      return Status::invalid(
          fmt::format("tokens [{}, {}) of sample {} are both on rank {} and on rank {}", piece.lo,
                      std::min(end, piece.hi), to_string(sample.id), pieces[i - 1].rank.value,
                      piece.rank.value));
    }
    if (piece.task != pieces.front().task) {
      return Status::invalid(
          fmt::format("sample {} is split between task {} and task {} (tokens [{}, {}) on rank {})",
                      to_string(sample.id), pieces.front().task.value, piece.task.value, piece.lo,
                      piece.hi, piece.rank.value));
    }
    end = piece.hi;
  }
  if (end == sample.tokens) return Status::ok();
  return Status::invalid(fmt::format("tokens [{}, {}) of sample {} are on no rank", end,
                                     sample.tokens, to_string(sample.id)));
}

/// Whether each sample's pieces, as they are stored, each lie against what those before tile, which
/// grows from both ends; and all in one task. So it is where samples are whole, and where shares of
/// rings are stored in the ring's order.
bool tiles_from_both_ends(const StepPlan& plan) {
  constexpr TaskIndex kNoTask(std::numeric_limits<std::uint32_t>::max());
  struct Left {
    std::uint32_t lo;
    std::uint32_t hi;
    TaskIndex task;
  };
  std::vector<Left> left;
  left.reserve(plan.samples.size());
  for (const PlanSample& sample : plan.samples) left.push_back({0, sample.tokens, kNoTask});
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    for (const Piece& piece : plan.pieces_of(micro_batch)) {
      Left& of = left[piece.sample.value];
      if (of.task == kNoTask) of.task = micro_batch.task;
      if (of.task != micro_batch.task) return false;
      if (piece.lo == of.lo) {
        of.lo = piece.hi;
      } else if (piece.hi == of.hi) {
        of.hi = piece.lo;
      } else {
        return false;
      }
    }
  }
  // Where pieces overlap, lo has passed hi, and no piece brings them together again.
  return std::ranges::all_of(left, [](const Left& of) { return of.lo == of.hi; });
}

Status check_conservation(const StepPlan& plan) {
  if (tiles_from_both_ends(plan)) return Status::ok();
  PiecesBySample by_sample(plan);
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const std::span<PlacedPiece> pieces = by_sample[i];
    std::ranges::sort(pieces, {}, &PlacedPiece::lo);
    BL_RETURN_IF_ERROR(check_sample(plan.samples[i], pieces));
  }
  return Status::ok();
}

Status check_rank_order(const StepPlan& plan) {
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    const std::span<const MicroBatch> micro_batches = plan.micro_batches_of(rank);
    for (std::size_t i = 1; i < micro_batches.size(); ++i) {
      if (micro_batches[i - 1].task < micro_batches[i].task) continue;
      return Status::invalid(
          fmt::format("rank {} runs a micro-batch of task {} after one of task {}", rank.value,
                      micro_batches[i].task.value, micro_batches[i - 1].task.value));
    }
  }
  return Status::ok();
}

Status not_in_ring(const StepPlan& plan, HdpRank rank, std::uint32_t place) {
  return Status::invalid(
      fmt::format("rank {} holds a micro-batch of task {} but is not in its ring", rank.value,
                  plan.micro_batches[place].task.value));
}

/// Why `rank`, a member of `task`, cannot take part in it where its micro-batch at `place` is next.
/// Precondition: its tasks grow.
Status not_at_task(const StepPlan& plan, HdpRank rank, TaskIndex task, std::uint32_t place) {
  const IndexRange of = plan.ranks[rank.value];
  if (place > of.begin && plan.micro_batches[place - 1].task == task) {
    return Status::invalid(
        fmt::format("rank {} is twice in the ring of task {}", rank.value, task.value));
  }
  if (place < of.end && plan.micro_batches[place].task < task)
    return not_in_ring(plan, rank, place);
  return Status::invalid(fmt::format(
      "rank {} is in the ring of task {} but holds no micro-batch of it", rank.value, task.value));
}

/// Whether each task's members are exactly the ranks with a micro-batch of it: going through the
/// tasks in order, the next micro-batch of each member is the task's, and at last none is left.
/// Precondition: check_rank_order(plan).
Status check_members(const StepPlan& plan) {
  std::vector<std::uint32_t> next;  // By rank: its next micro-batch.
  next.reserve(plan.ranks.size());
  for (const IndexRange& micro_batches : plan.ranks) next.push_back(micro_batches.begin);
  for (TaskIndex task; task.value < plan.tasks.size(); ++task) {
    const std::span<const HdpRank> members = plan.members_of(plan.tasks[task.value]);
    if (members.empty()) {
      return Status::invalid(fmt::format("task {} has no members", task.value));
    }
    for (const HdpRank rank : members) {
      std::uint32_t& place = next[rank.value];
      if (place == plan.ranks[rank.value].end || plan.micro_batches[place].task != task) {
        return not_at_task(plan, rank, task, place);
      }
      ++place;
    }
  }
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    if (next[rank.value] < plan.ranks[rank.value].end) {
      return not_in_ring(plan, rank, next[rank.value]);
    }
  }
  return Status::ok();
}

Status check_event_order(const StepPlan& plan) {
  std::vector<bool> gone_backward(plan.tasks.size(), false);
  std::uint32_t next_forward = 0;
  for (const auto& [task, phase] : plan.events) {
    if (phase == Phase::kForward) {
      if (task.value != next_forward) {
        return Status::invalid(
            fmt::format("task {} goes forward where task {} should", task.value, next_forward));
      }
      ++next_forward;
      continue;
    }
    if (task.value >= next_forward || gone_backward[task.value]) {
      return Status::invalid(fmt::format("task {} goes backward {}", task.value,
                                         gone_backward[task.value] ? "twice" : "before forward"));
    }
    gone_backward[task.value] = true;
  }
  const auto left = std::ranges::find(gone_backward, false);
  if (left == gone_backward.end()) return Status::ok();
  return Status::invalid(fmt::format("task {} never goes backward", left - gone_backward.begin()));
}

/// (2 + (1 - r)(layers - 2)) x tokens <= layers x capacity, all times kOffloadAll.
bool fits(std::uint64_t tokens, OffloadRatio offload, const Capacity& capacity) {
  if (tokens <= capacity.tokens) return true;
  if (capacity.layers < 3) return false;
  const std::uint64_t scale = kOffloadAll.value;
  __extension__ using Wide = unsigned __int128;
  const Wide kept = 2 * scale + (scale - offload.value) * (capacity.layers - 2);
  return kept * tokens <= Wide{capacity.layers} * capacity.tokens * scale;
}

Status check_capacity(const StepPlan& plan, const Capacity& capacity) {
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    for (const MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
      std::uint64_t tokens = 0;
      for (const Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
      const OffloadRatio offload = plan.tasks[micro_batch.task.value].offload;
      if (fits(tokens, offload, capacity)) continue;
      return Status::invalid(
          fmt::format("the micro-batch of task {} on rank {} holds {} tokens; the capacity is {} "
                      "(offload {}/{})",
                      micro_batch.task.value, rank.value, tokens, capacity.tokens, offload.value,
                      kOffloadAll.value));
    }
  }
  return Status::ok();
}

Status check_counts(const StepPlan& plan) {
  for (std::size_t rank = 1; rank < plan.ranks.size(); ++rank) {
    if (plan.ranks[rank].size() == plan.ranks[0].size()) continue;
    return Status::invalid(fmt::format("rank {} has {} micro-batches and rank 0 has {}", rank,
                                       plan.ranks[rank].size(), plan.ranks[0].size()));
  }
  return Status::ok();
}

Status check_totals(const StepPlan& plan) {
  std::uint64_t valid_labels = 0;
  for (const PlanSample& sample : plan.samples) valid_labels += sample.valid_labels;
  if (valid_labels != plan.global_valid_labels) {
    return Status::invalid(fmt::format("the samples have {} valid labels; the plan says {}",
                                       valid_labels, plan.global_valid_labels));
  }
  if (plan.makespan_ns < plan.lower_bound_ns) {
    return Status::invalid(fmt::format("the makespan of {} ns is below the lower bound of {} ns",
                                       plan.makespan_ns, plan.lower_bound_ns));
  }
  return Status::ok();
}

}  // namespace

Status check_plan(const StepPlan& plan, const PlanCheckOptions& options) {
  BL_RETURN_IF_ERROR(check_plan_structure(plan));
  BL_RETURN_IF_ERROR(check_ids(plan));
  BL_RETURN_IF_ERROR(check_rank_order(plan));
  BL_RETURN_IF_ERROR(check_members(plan));
  BL_RETURN_IF_ERROR(check_conservation(plan));
  BL_RETURN_IF_ERROR(check_event_order(plan));
  if (options.capacity) BL_RETURN_IF_ERROR(check_capacity(plan, *options.capacity));
  if (options.equal_micro_batch_counts) BL_RETURN_IF_ERROR(check_counts(plan));
  return check_totals(plan);
}

}  // namespace batchloom::model
