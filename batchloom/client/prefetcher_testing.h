// SPDX-License-Identifier: Apache-2.0
// What the tests of the prefetcher share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "batchloom/client/client_world_testing.h"
#include "batchloom/client/prefetcher.h"

namespace batchloom::client {

inline constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

/// A prefetcher of rank 0 on its world's stream.
class Reading {
 public:
  explicit Reading(ClientWorld& world, std::uint64_t budget_bytes = kPlenty, Step start = Step(0),
                   FetchOptions options = {})
      : Reading(world, {.budget_bytes = budget_bytes}, start, std::move(options)) {}
  Reading(ClientWorld& world, const PrefetchOptions& prefetch, Step start, FetchOptions options)
      : fetcher_(world.feed(), std::move(options)),
        prefetcher_(world.feed(), fetcher_, prefetch, start) {}

  Prefetcher& operator*() { return prefetcher_; }
  Prefetcher* operator->() { return &prefetcher_; }

  /// Expects the step of this number next, on time.
  void expect_step(std::uint64_t number, const CallOptions& call = {}) {
    const Result<StepPtr> step = prefetcher_.next(call);
    ASSERT_TRUE(step.is_ok()) << step.status().to_string();
    ASSERT_NE(*step, nullptr) << "the end, where step " << number << " should be";
    EXPECT_EQ((*step)->step, Step(number));
  }
  void expect_end() {
    const Result<StepPtr> step = prefetcher_.next({});
    ASSERT_TRUE(step.is_ok()) << step.status().to_string();
    EXPECT_EQ(*step, nullptr);
  }

 private:
  StepFetcher fetcher_;
  Prefetcher prefetcher_;
};

}  // namespace batchloom::client
