// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/metrics.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "batchloom/base/real_runtime.h"

namespace batchloom {
namespace {

TEST(Counters, OneNameIsOneCounter) {
  Counters counters;
  Counter& commits = counters.counter("store_commits");
  EXPECT_EQ(&counters.counter("store_commits"), &commits);
  EXPECT_NE(&counters.counter("store_commit_lost_races"), &commits);
  commits.add();
  commits.add(4);
  EXPECT_EQ(commits.value(), 5u);
}

TEST(Counters, ASnapshotHasAllByName) {
  Counters counters;
  EXPECT_TRUE(counters.snapshot().empty());
  counters.counter("b").add(2);
  counters.counter("a");
  const std::map<std::string, std::uint64_t> expected = {{"a", 0}, {"b", 2}};
  EXPECT_EQ(counters.snapshot(), expected);
}

TEST(Counters, AreSharedByThreads) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kAdds = 10'000;
  Counters counters;
  const auto runtime = make_real_runtime();
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < kThreads; ++i) {
    tasks.push_back(runtime->spawn("adder", [&counters](std::stop_token) {
      for (std::uint64_t n = 0; n < kAdds; ++n) counters.counter("adds").add();
    }));
  }
  tasks.clear();
  EXPECT_EQ(counters.counter("adds").value(), kThreads * kAdds);
}

}  // namespace
}  // namespace batchloom
