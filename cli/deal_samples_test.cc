// SPDX-License-Identifier: Apache-2.0
#include "cli/deal_samples.h"

#include <gtest/gtest.h>

#include "batchloom/model/plan_check.h"
#include "batchloom/simulator/synthetic.h"

namespace batchloom::cli {
namespace {

store::IndexedStep stored_step() {
  simulator::SyntheticConfig config;
  config.ranks = 3;
  config.records_per_run = 2;
  config.record_tokens = 20;
  config.ring = true;
  const auto batches = simulator::SyntheticBatches::create(config).value();
  return {.plan = batches->object(store::Seq(4)).plans.front(), .origins = {}};
}

TEST(DealSamples, MakesAPlanForAnyNumberOfRanks) {
  const store::IndexedStep step = stored_step();
  ASSERT_EQ(step.plan.samples.size(), 7u);
  for (const std::uint32_t ranks : {1u, 2u, 5u, 7u, 20u}) {
    const auto plan = deal_samples(step, ranks);
    ASSERT_TRUE(plan.is_ok());
    const Status checked =
        model::check_plan(*plan, {.capacity = std::nullopt, .equal_micro_batch_counts = true});
    EXPECT_TRUE(checked.is_ok()) << ranks << ": " << checked.to_string();
    EXPECT_EQ(plan->samples, step.plan.samples);
    EXPECT_EQ(plan->ranks.size(), ranks);
    EXPECT_EQ(plan->pieces.size(), 7u);
    EXPECT_EQ(deal_samples(step, ranks)->digest, plan->digest);
  }
}

TEST(DealSamples, DealsInTurn) {
  const auto plan = deal_samples(stored_step(), 5);
  ASSERT_TRUE(plan.is_ok());
  const auto micro_batches = plan->micro_batches_of(model::HdpRank(1));
  ASSERT_EQ(micro_batches.size(), 1u);
  const auto pieces = plan->pieces_of(micro_batches.front());
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].sample, model::SampleIndex(1));
  EXPECT_EQ(pieces[1].sample, model::SampleIndex(6));
  EXPECT_EQ(pieces[1].hi, plan->samples[6].tokens);
}

}  // namespace
}  // namespace batchloom::cli
