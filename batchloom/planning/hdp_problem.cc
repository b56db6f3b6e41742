// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_problem.h"

#include <fmt/format.h>

#include <numeric>

#include "batchloom/planning/radix_sort.h"

namespace batchloom::planning {
namespace {

/// Fills in the sample's choices. What all ranks together spend on it at least.
std::uint64_t weigh_degrees(const HdpCosts& costs, LongSample& sample,
                            std::vector<DegreeChoice>& choices) {
  std::uint64_t least_work_ns = UINT64_MAX;
  std::uint64_t least_time_ns = UINT64_MAX;
  sample.choices.begin = static_cast<std::uint32_t>(choices.size());
  for (std::uint32_t degree = sample.degrees.min; degree <= sample.degrees.max; ++degree) {
    const std::uint64_t time_ns = costs.gang_ns(sample.attention_ns, sample.tokens, degree);
    least_work_ns = std::min(least_work_ns, degree * time_ns);
    if (time_ns >= least_time_ns) continue;
    least_time_ns = time_ns;
    choices.push_back({degree, time_ns});
  }
  sample.choices.end = static_cast<std::uint32_t>(choices.size());
  return least_work_ns;
}

}  // namespace

const DegreeChoice* HdpProblem::within(const LongSample& sample, std::uint64_t time_ns) const {
  const auto of = choices_of(sample);
  const auto found = std::ranges::partition_point(
      of, [time_ns](const DegreeChoice& choice) { return choice.time_ns > time_ns; });
  return found == of.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> rows_by_length(std::span<const std::uint32_t> tokens) {
  std::vector<std::uint32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0U);
  const std::uint32_t longest = tokens.empty() ? 0 : std::ranges::max(tokens);
  radix_sort(rows, [&](std::uint32_t row) { return longest - tokens[row]; });
  return rows;
}

Result<HdpProblem> make_problem(const HdpCosts& costs, std::span<const std::uint32_t> tokens,
                                const std::function<std::string(std::uint32_t)>& name) {
  const HdpShape& shape = costs.shape();
  HdpProblem problem;
  std::uint64_t work_ns = 0;
  std::uint64_t short_tokens = 0;
  for (const std::uint32_t row : rows_by_length(tokens)) {
    const std::uint32_t count = tokens[row];
    const std::uint64_t attention_ns = costs.attention_ns(count);
    if (count <= shape.capacity_tokens) {
      problem.shorts.push_back({row, count, attention_ns});
      work_ns += attention_ns;
      short_tokens += count;
      continue;
    }
    LongSample sample{row, count, costs.degrees(count), attention_ns};
    if (sample.degrees.max == 0) {
      return Status::does_not_fit(fmt::format(
          "sample {} of {} tokens fits on no number of ranks: {} of them hold {} tokens each{}; "
          "raise the capacity, or cut samples at fewer tokens (max_sample_tokens)",
          name(row), count, shape.ranks, shape.capacity_tokens,
          shape.offload ? ", also with activations on the host" : ""));
    }
    work_ns += weigh_degrees(costs, sample, problem.choices);
    problem.longest_bound_ns = std::max(problem.longest_bound_ns, problem.choices.back().time_ns);
    problem.longs.push_back(sample);
  }
  if (!problem.shorts.empty()) {
    const ShortSample& longest = problem.shorts.front();
    problem.longest_bound_ns = std::max(
        problem.longest_bound_ns, longest.attention_ns + costs.least_rest_from_ns(longest.tokens));
  }
  problem.work_bound_ns = (work_ns + costs.least_rest_ns(short_tokens)) / shape.ranks;
  return problem;
}

}  // namespace batchloom::planning
