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

/// Values by key, keys being small integers: a counting sort into one vector.
template <class T>
class Grouped {
 public:
  /// `for_each(visit)` calls visit(key, value) for every value; it is called twice.
  template <class ForEach>
  Grouped(std::size_t keys, ForEach for_each) : begins_(keys + 1, 0) {
    for_each([this](std::uint32_t key, const T&) { ++begins_[key + 1]; });
    for (std::size_t key = 0; key < keys; ++key) begins_[key + 1] += begins_[key];
    values_.resize(begins_.back());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for_each([&](std::uint32_t key, const T& value) { values_[next[key]++] = value; });
  }

  std::span<T> operator[](std::size_t key) {
    return std::span(values_).subspan(begins_[key], begins_[key + 1] - begins_[key]);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<T> values_;
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

Status check_conservation(const StepPlan& plan) {
  Grouped<PlacedPiece> by_sample(plan.samples.size(), [&plan](auto visit) {
    for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
      for (const MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
        for (const Piece& piece : plan.pieces_of(micro_batch)) {
          visit(piece.sample.value, PlacedPiece{piece.lo, piece.hi, rank, micro_batch.task});
        }
      }
    }
  });
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

/// Whether each task's members are exactly the ranks with a micro-batch of it. Since a rank's tasks
/// grow strictly, no rank holds two of one task.
Status check_members(const StepPlan& plan) {
  Grouped<HdpRank> holders(plan.tasks.size(), [&plan](auto visit) {
    for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
      for (const MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
        visit(micro_batch.task.value, rank);
      }
    }
  });
  constexpr auto kNoTask = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> member_of(plan.ranks.size(), kNoTask);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    const std::span<const HdpRank> members = plan.members_of(plan.tasks[task]);
    for (const HdpRank rank : members) {
      if (member_of[rank.value] == task) {
        return Status::invalid(
            fmt::format("rank {} is twice in the ring of task {}", rank.value, task));
      }
      member_of[rank.value] = task;
    }
    for (const HdpRank rank : holders[task]) {
      if (member_of[rank.value] == task) continue;
      return Status::invalid(fmt::format(
          "rank {} holds a micro-batch of task {} but is not in its ring", rank.value, task));
    }
    if (members.size() != holders[task].size()) {
      return Status::invalid(
          fmt::format("task {} has {} members, of which {} hold a micro-batch of it", task,
                      members.size(), holders[task].size()));
    }
    if (members.empty()) return Status::invalid(fmt::format("task {} has no members", task));
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
