// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace batchloom::planning {
namespace {

/// Tasks with members of their own.
struct Tasks {
  struct Row {
    std::vector<std::uint32_t> members;
    std::uint64_t forward_ns = 1;
    std::uint64_t backward_ns = 2;
  };
  std::vector<Row> rows;

  /// Each task in the first slot that is free for all of its members.
  Result<PipelineTime> time(std::uint32_t ranks, std::uint32_t stages) const {
    std::vector<std::uint32_t> next(ranks, 0);
    std::vector<PipelineTask> tasks;
    for (const Row& row : rows) {
      std::uint32_t slot = 0;
      for (const std::uint32_t rank : row.members) slot = std::max(slot, next[rank]);
      for (const std::uint32_t rank : row.members) next[rank] = slot + 1;
      tasks.push_back({row.members, slot, row.forward_ns, row.backward_ns});
    }
    return time_of_pipeline(tasks, ranks, stages);
  }
};

TEST(PipelineTime, OfEqualMicroBatchesIsTheTextbooks) {
  for (std::uint32_t stages = 1; stages <= 5; ++stages) {
    for (std::uint64_t count = 1; count <= 9; ++count) {
      const Tasks tasks{std::vector<Tasks::Row>(count, {{0}, 10, 20})};
      // Every micro-batch, and a bubble of stages - 1 of them: Megatron-LM (2021), section 2.2.
      EXPECT_EQ(tasks.time(1, stages)->makespan_ns, (count + stages - 1) * 30)
          << stages << " stages, " << count << " micro-batches";
    }
  }
}

TEST(PipelineTime, WithoutStagesIsThatOfTheRanks) {
  const Tasks tasks{{{{0}, 1, 2}, {{0, 1}, 10, 20}, {{1}, 5, 5}}};
  const PipelineTime time = tasks.time(3, 1).value();
  EXPECT_EQ(time.makespan_ns, 3 + 30 + 10U) << "the ring waits for rank 0";
  EXPECT_EQ(time.busy_ns, (std::vector<std::uint64_t>{33, 40, 0}));
}

TEST(PipelineTime, ALongOneHoldsUpItsNeighboursInTheRing) {
  const Tasks apart{{{{0}, 30, 60}, {{1}, 1, 2}, {{1}, 1, 2}}};
  const Tasks ring{{{{0}, 30, 60}, {{0, 1}, 1, 2}, {{1}, 1, 2}}};
  EXPECT_EQ(apart.time(2, 2)->makespan_ns, 2 * 90U);
  EXPECT_GT(ring.time(2, 2)->makespan_ns, 2 * 90U);
}

TEST(PipelineTime, RingsThatCrossDoNotWaitForEachOther) {
  const Tasks tasks{{{{0}, 1, 2}, {{0, 1}, 1, 2}, {{1}, 1, 2}, {{0, 1}, 1, 2}}};
  EXPECT_TRUE(tasks.time(2, 2).is_ok());
}

TEST(PipelineTime, SlotsGrowAlongARank) {
  const std::uint32_t rank = 0;
  const std::span<const std::uint32_t> members(&rank, 1);
  const std::vector<PipelineTask> tasks = {{members, 1, 1, 1}, {members, 1, 1, 1}};
  EXPECT_EQ(time_of_pipeline(tasks, 1, 2).status().message(),
            "rank 0 runs task 0 in slot 1 and task 1 in slot 1");
}

RC_GTEST_PROP(PipelineTime, LiesBetweenItsBounds, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto stages = *rc::gen::inRange<std::uint32_t>(1, 5);
  Tasks tasks;
  const auto count = *rc::gen::inRange<std::size_t>(0, 12);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Tasks::Row row{
        {}, *rc::gen::inRange<std::uint64_t>(1, 50), *rc::gen::inRange<std::uint64_t>(1, 50)};
    const auto set = *rc::gen::inRange<std::uint32_t>(1, 1U << ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (set >> rank & 1) row.members.push_back(rank);
    }
    sum += row.forward_ns + row.backward_ns;
    tasks.rows.push_back(row);
  }
  const auto time = tasks.time(ranks, stages);
  RC_ASSERT(time.is_ok());
  RC_ASSERT(time->makespan_ns >= std::ranges::max(time->busy_ns));
  RC_ASSERT(time->makespan_ns <= sum * stages);
}

}  // namespace
}  // namespace batchloom::planning
