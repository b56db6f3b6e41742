// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_problem.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kDigitBits = 11;
constexpr std::uint32_t kDigits = 3;
constexpr std::uint32_t kDigitValues = 1U << kDigitBits;

std::uint32_t digit_of(std::uint32_t tokens, std::uint32_t digit) {
  return ~tokens >> (digit * kDigitBits) & (kDigitValues - 1);  // Inverted: the longest first.
}

/// What all ranks together spend on the sample at least.
std::uint64_t least_work_ns(const HdpCosts& costs, const LongSample& sample) {
  std::uint64_t least = UINT64_MAX;
  for (std::uint32_t degree = sample.degrees.min; degree <= sample.degrees.max; ++degree) {
    least = std::min(least, degree * costs.gang_ns(sample.attention_ns, sample.tokens, degree));
  }
  return least;
}

}  // namespace

std::vector<std::uint32_t> rows_by_length(std::span<const std::uint32_t> tokens) {
  std::vector<std::uint32_t> rows(tokens.size());
  for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
  std::array<std::array<std::uint32_t, kDigitValues>, kDigits> counts{};
  for (const std::uint32_t count : tokens) {
    for (std::uint32_t digit = 0; digit < kDigits; ++digit) ++counts[digit][digit_of(count, digit)];
  }
  std::vector<std::uint32_t> sorted(rows.size());
  for (std::uint32_t digit = 0; digit < kDigits; ++digit) {
    std::uint32_t begin = 0;
    for (std::uint32_t& count : counts[digit]) begin += std::exchange(count, begin);
    for (const std::uint32_t row : rows) {
      sorted[counts[digit][digit_of(tokens[row], digit)]++] = row;
    }
    rows.swap(sorted);
  }
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
    const LongSample sample{row, count, costs.degrees(count), attention_ns};
    if (sample.degrees.max == 0) {
      return Status::invalid(fmt::format(
          "sample {} of {} tokens fits on no number of ranks: {} of them hold {} tokens each{}; "
          "raise the capacity, or cut samples at fewer tokens (max_sample_tokens)",
          name(row), count, shape.ranks, shape.capacity_tokens,
          shape.offload ? ", also with activations on the host" : ""));
    }
    work_ns += least_work_ns(costs, sample);
    problem.longest_bound_ns =
        std::max(problem.longest_bound_ns, costs.gang_ns(attention_ns, count, sample.degrees.max));
    problem.longs.push_back(sample);
  }
  if (!problem.shorts.empty()) {
    const ShortSample& longest = problem.shorts.front();
    problem.longest_bound_ns =
        std::max(problem.longest_bound_ns, longest.attention_ns + costs.rest_ns(longest.tokens));
  }
  problem.work_bound_ns = (work_ns + costs.least_rest_ns(short_tokens)) / shape.ranks;
  return problem;
}

}  // namespace batchloom::planning
