// SPDX-License-Identifier: Apache-2.0
// The half of plan_check.h that makes a plan safe to walk. It assumes nothing.
#include <fmt/core.h>

#include <string_view>
#include <vector>

#include "batchloom/model/plan_check.h"

namespace batchloom::model {
namespace {

/// Whether ranges that come one by one tile [0, size) of the vector `of`.
class Tiling {
 public:
  Tiling(std::string_view owner, std::string_view of, std::size_t size)
      : owner_(owner), of_(of), size_(size) {}

  Status add(IndexRange range) {
    if (range.begin != end_ || range.end < range.begin || range.end > size_) {
      return Status::invalid(fmt::format("{} {} has {} [{}, {}); expected [{}, up to {})", owner_,
                                         count_, of_, range.begin, range.end, end_, size_));
    }
    end_ = range.end;
    ++count_;
    return Status::ok();
  }

  Status finish() const {
    if (end_ == size_) return Status::ok();
    return Status::invalid(fmt::format("{} [{}, {}) belong to no {}", of_, end_, size_, owner_));
  }

 private:
  std::string_view owner_;
  std::string_view of_;
  std::size_t size_;
  std::size_t end_ = 0;
  std::size_t count_ = 0;
};

Status check_samples(const StepPlan& plan) {
  for (const PlanSample& sample : plan.samples) {
    if (sample.tokens == 0) {
      return Status::invalid(fmt::format("sample {} has no tokens", to_string(sample.id)));
    }
    if (sample.valid_labels > sample.tokens) {
      return Status::invalid(fmt::format("sample {} has {} valid labels and {} tokens",
                                         to_string(sample.id), sample.valid_labels, sample.tokens));
    }
  }
  return Status::ok();
}

Status check_pieces(const StepPlan& plan) {
  std::vector<std::uint32_t> tokens;  // By sample; close together, since pieces ask at random.
  tokens.reserve(plan.samples.size());
  for (const PlanSample& sample : plan.samples) tokens.push_back(sample.tokens);
  for (std::size_t i = 0; i < plan.pieces.size(); ++i) {
    const auto [sample, lo, hi] = plan.pieces[i];
    if (sample.value >= tokens.size()) {
      return Status::invalid(fmt::format("piece {} is of sample number {}; there are {}", i,
                                         sample.value, tokens.size()));
    }
    if (lo >= hi || hi > tokens[sample.value]) {
      return Status::invalid(fmt::format("piece {} is tokens [{}, {}) of sample {}, which has {}",
                                         i, lo, hi, to_string(plan.samples[sample.value].id),
                                         tokens[sample.value]));
    }
  }
  return Status::ok();
}

Status check_ranks(const StepPlan& plan) {
  if (plan.ranks.size() != plan.topology.hdp_size()) {
    return Status::invalid(
        fmt::format("the plan has {} ranks; its topology \"{}\" has {} HDP ranks",
                    plan.ranks.size(), to_string(plan.topology), plan.topology.hdp_size()));
  }
  Tiling tiling("rank", "micro-batches", plan.micro_batches.size());
  for (const IndexRange& micro_batches : plan.ranks) BL_RETURN_IF_ERROR(tiling.add(micro_batches));
  return tiling.finish();
}

Status check_micro_batches(const StepPlan& plan) {
  Tiling tiling("micro-batch", "pieces", plan.pieces.size());
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    BL_RETURN_IF_ERROR(tiling.add(micro_batch.pieces));
    if (micro_batch.task.value >= plan.tasks.size()) {
      return Status::invalid(fmt::format("a micro-batch belongs to task {}; there are {}",
                                         micro_batch.task.value, plan.tasks.size()));
    }
  }
  return tiling.finish();
}

Status check_tasks(const StepPlan& plan) {
  Tiling tiling("task", "members", plan.members.size());
  for (const Task& task : plan.tasks) {
    BL_RETURN_IF_ERROR(tiling.add(task.members));
    if (task.offload > kOffloadAll) {
      return Status::invalid(fmt::format("a task has the offload ratio {}/{}; the most is 1",
                                         task.offload.value, kOffloadAll.value));
    }
  }
  BL_RETURN_IF_ERROR(tiling.finish());
  for (const HdpRank rank : plan.members) {
    if (rank.value >= plan.ranks.size()) {
      return Status::invalid(fmt::format("rank {} is a member of a task; there are {} ranks",
                                         rank.value, plan.ranks.size()));
    }
  }
  return Status::ok();
}

Status check_events(const StepPlan& plan) {
  for (const auto& [task, phase] : plan.events) {
    if (task.value >= plan.tasks.size()) {
      return Status::invalid(
          fmt::format("an event is of task {}; there are {}", task.value, plan.tasks.size()));
    }
    if (phase > Phase::kBackward) {
      return Status::invalid(fmt::format("an event of task {} has the unknown phase {}", task.value,
                                         static_cast<unsigned>(phase)));
    }
  }
  return Status::ok();
}

}  // namespace

Status check_plan_structure(const StepPlan& plan) {
  BL_RETURN_IF_ERROR(check_samples(plan));
  BL_RETURN_IF_ERROR(check_pieces(plan));
  BL_RETURN_IF_ERROR(check_ranks(plan));
  BL_RETURN_IF_ERROR(check_micro_batches(plan));
  BL_RETURN_IF_ERROR(check_tasks(plan));
  BL_RETURN_IF_ERROR(check_events(plan));
  if (plan.bound_term > BoundTerm::kLongest) {
    return Status::invalid(
        fmt::format("the bound's term {} is unknown", static_cast<unsigned>(plan.bound_term)));
  }
  return Status::ok();
}

}  // namespace batchloom::model
