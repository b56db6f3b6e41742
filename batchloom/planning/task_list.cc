// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/task_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchloom::planning {

void TaskList::add(std::span<const model::HdpRank> members, std::span<const std::uint32_t> rows,
                   model::OffloadRatio offload) {
  const std::uint64_t degree = members.size();
  TaskDraft task{.offload = offload};
  task.members.begin = static_cast<std::uint32_t>(draft_.members.size());
  task.samples.begin = static_cast<std::uint32_t>(draft_.samples.size());
  std::uint64_t tokens = 0;
  for (const std::uint32_t row : rows) {
    tokens += samples_[row].tokens;
    task.time_ns += (costs_.attention_ns(samples_[row].tokens) + degree - 1) / degree;
    draft_.samples.emplace_back(row);
  }
  const std::uint64_t share = std::max<std::uint64_t>((tokens + degree - 1) / degree, 1);
  task.time_ns += costs_.rest_ns(static_cast<std::uint32_t>(share));
  for (const model::HdpRank rank : members) {
    task.start_ns = std::max(task.start_ns, free_ns_[rank.value]);
    draft_.members.push_back(rank);
  }
  const std::uint64_t end_ns = task.start_ns + task.time_ns;
  for (const model::HdpRank rank : members) free_ns_[rank.value] = end_ns;
  draft_.makespan_ns = std::max(draft_.makespan_ns, end_ns);
  task.members.end = static_cast<std::uint32_t>(draft_.members.size());
  task.samples.end = static_cast<std::uint32_t>(draft_.samples.size());
  draft_.tasks.push_back(task);
}

PlanDraft TaskList::take() && {
  return std::move(draft_);
}

std::vector<model::HdpRank> ranks_from(std::uint32_t first, std::uint32_t count,
                                       std::uint32_t ranks) {
  std::vector<model::HdpRank> members;
  members.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) members.emplace_back((first + i) % ranks);
  return members;
}

std::string sample_text(const model::PlanSample& sample) {
  return fmt::format("sample {} of {} tokens", to_string(sample.id), sample.tokens);
}

}  // namespace batchloom::planning
