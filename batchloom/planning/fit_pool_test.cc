// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/fit_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {
namespace {

/// By looking at all that are left.
RC_GTEST_PROP(FitPool, TakesTheLongestThatFitsAndOfEqualOnesTheFirst, ()) {
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 60);
  const auto lengths =
      *rc::gen::container<Lengths>(rc::gen::inRange<std::uint32_t>(1, 2 * capacity + 1));
  FitPool pool(samples_of(lengths), capacity);
  std::vector<bool> left(lengths.size());
  for (std::size_t row = 0; row < left.size(); ++row) left[row] = lengths[row] <= capacity;
  const auto rooms = *rc::gen::container<Lengths>(2 * lengths.size() + 1,
                                                  rc::gen::inRange<std::uint32_t>(0, capacity + 1));
  for (const std::uint32_t room : rooms) {
    std::size_t best = lengths.size();
    for (std::size_t row = 0; row < left.size(); ++row) {
      if (!left[row] || lengths[row] > room) continue;
      if (best == lengths.size() || lengths[row] > lengths[best]) best = row;
    }
    const auto taken = pool.take_at_most(room);
    RC_ASSERT(taken.has_value() == (best < lengths.size()));
    if (!taken) continue;
    RC_ASSERT(taken->row == best);
    RC_ASSERT(taken->tokens == lengths[best]);
    left[best] = false;
  }
}

TEST(FitPool, OfNothingGivesNothing) {
  FitPool pool({}, 10);
  EXPECT_FALSE(pool.take_at_most(10).has_value());
  EXPECT_FALSE(pool.take_at_most(0).has_value());
}

}  // namespace
}  // namespace batchloom::planning
