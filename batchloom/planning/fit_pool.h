// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/model/step_plan.h"

namespace batchloom::planning {

/// Samples that fit on one rank, by length: for packing by "the longest that still fits". Linear
/// time to make; a take costs next to nothing.
class FitPool {
 public:
  /// Takes those of at most `capacity_tokens`, and knows them by their rows.
  FitPool(std::span<const model::PlanSample> samples, std::uint32_t capacity_tokens);

  struct Taken {
    std::uint32_t row = 0;
    std::uint32_t tokens = 0;
  };
  /// Takes the longest of at most so many tokens; of equal ones the first row. Nullopt: there is
  /// none. Precondition: at most the capacity.
  std::optional<Taken> take_at_most(std::uint32_t tokens);

 private:
  /// The largest length up to `tokens` of which any are left; 0: none.
  std::uint32_t longest(std::uint32_t tokens);

  std::vector<std::uint32_t> rows_;     // By length, then in order.
  std::vector<std::uint32_t> next_;     // By length, of rows_.
  std::vector<std::uint32_t> end_;      // By length, of rows_.
  std::vector<std::uint32_t> at_most_;  // By length: itself, or one that is nearer to longest().
};

}  // namespace batchloom::planning
