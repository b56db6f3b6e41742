// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/batch_sources.h"

#include <gtest/gtest.h>

#include <set>

#include "batchloom/model/plan_check.h"

namespace batchloom::simulator {
namespace {

using model::HdpRank;

const SourceShape kShapes[] = {{.producer = "p0", .steps_per_object = 2, .ring = false},
                               {.producer = "p1", .steps_per_object = 3, .ring = true}};

TEST(BatchSources, PlansMayBeExecutedForAnyRanks) {
  const BatchSources sources(kShapes);
  for (const SourceShape& shape : kShapes) {
    for (std::uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
      const model::StepPlan plan = sources.of(shape.producer, ranks).plan(store::Seq(5), 1);
      EXPECT_EQ(plan.ranks.size(), ranks);
      EXPECT_TRUE(model::check_plan(plan).is_ok()) << model::check_plan(plan).to_string();
    }
  }
}

TEST(BatchSources, EveryStepAndRankGetsItsOwn) {
  const BatchSources sources(kShapes);
  std::set<std::uint64_t> contents;
  std::set<std::uint64_t> samples;
  for (const SourceShape& shape : kShapes) {
    for (std::uint64_t seq = 0; seq < 3; ++seq) {
      for (std::uint32_t position = 0; position < shape.steps_per_object; ++position) {
        store::Entry entry;
        entry.producer = shape.producer;
        entry.seq = store::Seq(seq);
        for (HdpRank rank; rank.value < 2; ++rank) {
          const ExpectedStep step = sources.expected(entry, position, {rank, 2});
          contents.insert(step.content_hash);
          samples.insert(step.samples_digest);
          EXPECT_EQ(sources.tokens(entry, position, {rank, 2}), shape.ring ? 15U : 9U);
        }
      }
    }
  }
  EXPECT_EQ(contents.size(), 2U * (6 + 9));
  EXPECT_EQ(samples.size(), 6U + 9U);
}

TEST(BatchSources, AStepIsPlannedAnewFromItsSamples) {
  const BatchSources sources(kShapes);
  for (const SourceShape& shape : kShapes) {
    for (std::uint32_t position = 0; position < shape.steps_per_object; ++position) {
      store::IndexedStep stored;
      stored.plan = sources.of(shape.producer, 3).plan(store::Seq(7), position);
      EXPECT_EQ(sources.plan_anew(stored, 2).value(),
                sources.of(shape.producer, 2).plan(store::Seq(7), position));
    }
  }
}

TEST(BatchSources, SamplesOfNoSourceAreNotPlanned) {
  const BatchSources sources(kShapes);
  store::IndexedStep step;
  EXPECT_TRUE(sources.plan_anew(step, 2).is(ErrorKind::kInvalid));
  step.plan.samples.emplace_back().id.source = model::SourceId(2);
  EXPECT_TRUE(sources.plan_anew(step, 2).is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::simulator
