// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/fit_pool.h"

namespace batchloom::planning {

FitPool::FitPool(std::span<const model::PlanSample> samples, std::uint32_t capacity_tokens) {
  const std::size_t lengths = capacity_tokens + std::size_t{1};
  end_.assign(lengths, 0);
  for (const model::PlanSample& sample : samples) {
    if (sample.tokens <= capacity_tokens) ++end_[sample.tokens];
  }
  next_.resize(lengths);
  at_most_.resize(lengths);
  std::uint32_t count = 0;
  for (std::uint32_t tokens = 0; tokens < lengths; ++tokens) {
    at_most_[tokens] = end_[tokens] > 0 || tokens == 0 ? tokens : tokens - 1;
    next_[tokens] = count;
    count += end_[tokens];
    end_[tokens] = next_[tokens];
  }
  rows_.resize(count);
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    if (samples[row].tokens <= capacity_tokens) rows_[end_[samples[row].tokens]++] = row;
  }
}

std::optional<FitPool::Taken> FitPool::take_at_most(std::uint32_t tokens) {
  const std::uint32_t found = longest(tokens);
  if (found == 0) return std::nullopt;
  const Taken taken{.row = rows_[next_[found]++], .tokens = found};
  if (next_[found] == end_[found]) at_most_[found] = found - 1;
  return taken;
}

std::uint32_t FitPool::longest(std::uint32_t tokens) {
  while (at_most_[tokens] != tokens) {
    at_most_[tokens] = at_most_[at_most_[tokens]];
    tokens = at_most_[tokens];
  }
  return tokens;
}

}  // namespace batchloom::planning
