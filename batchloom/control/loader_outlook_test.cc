// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/construction/corpus_testing.h"
#include "batchloom/control/loader_scaler.h"
#include "batchloom/control/pipeline_run_testing.h"
#include "batchloom/control/step_demand.h"

namespace batchloom::control {
namespace {

using construction::Corpus;
using construction::CorpusShape;
using std::chrono::milliseconds;

const CorpusShape kShape{.seed = 5, .sources = 3, .records = 200};

/// What is measured where an order of source i takes i + 1 times 10 ms, and what was brought.
struct Measuring {
  explicit Measuring(const CorpusShape& shape = kShape) : corpus(shape), fetcher(corpus) {}

  Result<std::vector<SampleCost>> measure(Duration at_most, const std::stop_token& stop = {}) {
    Result<std::vector<SampleCost>> costs(std::vector<SampleCost>{});
    SimWorld world(3);
    SimProcess& process = world.add_process("p");
    fetcher.before = [&](const FetchOrder& order, const CallOptions&) {
      for (const model::SampleMeta& sample : order.samples) brought.insert(sample.id);
      if (order.source == fails) return Status::corruption("cut short");
      const auto pause = milliseconds(10) * (order.source.value + 1);
      return process.sleep_until({.deadline = process.now() + pause});
    };
    process.start("main", [&] {
      costs = measure_sources(
          process, corpus, fetcher,
          {.max_sample_tokens = corpus.shape().rule.max_sample_tokens, .at_most = at_most},
          {.deadline = kNever, .stop = stop});
    });
    EXPECT_TRUE(world.run().is_ok());
    return costs;
  }

  Corpus corpus;
  CorpusFetcher fetcher;
  std::set<model::SampleId> brought;
  std::optional<model::SourceId> fails;
};

TEST(LoaderOutlook, MeasuresSomeSamplesFromAllOverEachSource) {
  Measuring measuring;
  const auto costs = measuring.measure(std::chrono::hours(1)).value();
  ASSERT_EQ(costs.size(), 3U);
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    samples += costs[i].samples;
    EXPECT_EQ(costs[i].samples, 64U) << i;
    EXPECT_NEAR(costs[i].thread_s, 0.01 * static_cast<double>(i + 1) / 16, 1e-6) << i;
    EXPECT_GT(costs[i].bytes, 0) << i;
    EXPECT_GT(costs[i].tokens, 1) << i;
  }
  EXPECT_EQ(measuring.brought.size(), samples) << "no sample twice";
  EXPECT_GT(measuring.brought.rbegin()->index.value, 150U);
}

TEST(LoaderOutlook, WhatASmallSourceHasIsMeasured) {
  Measuring measuring({.seed = 5, .sources = 2, .records = 3});
  const auto costs = measuring.measure(std::chrono::hours(1)).value();
  for (const SampleCost& cost : costs) {
    EXPECT_GE(cost.samples, 1U);
    EXPECT_LE(cost.samples, 3U * 3U) << "3 records of up to 3 parts";
  }
}

TEST(LoaderOutlook, WhenTheTimeIsUpSomeAreNotMeasured) {
  Measuring measuring;
  const auto costs = measuring.measure(milliseconds(25)).value();
  EXPECT_GT(costs[0].samples, 0U);
  EXPECT_LT(costs[0].samples, 64U);
  EXPECT_EQ(costs[2].samples, 0U);
}

TEST(LoaderOutlook, WhatCannotBeReadIsNotMeasuredAndAStopEndsIt) {
  Measuring measuring;
  measuring.fails = model::SourceId(1);
  const auto costs = measuring.measure(std::chrono::hours(1)).value();
  EXPECT_EQ(costs[0].samples, 64U);
  EXPECT_EQ(costs[1], SampleCost());
  EXPECT_EQ(costs[2].samples, 64U);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(measuring.measure(std::chrono::hours(1), stop.get_token()).is(ErrorKind::kCancelled));
}

TEST(LoaderOutlook, ThreadsFollowFromCostsAndTheMix) {
  Measuring measuring;
  const auto graph = measuring.corpus.graph(planning::Balance::kNone);
  auto costs = measuring.measure(std::chrono::hours(1)).value();
  const auto outlook =
      foresee_loaders(*graph.mix, measuring.corpus, costs, {.cores = 4}, 10).value();
  EXPECT_EQ(outlook.partition.threads, 4U);
  EXPECT_EQ(outlook.partition.bound, PartitionBound::kCores);
  EXPECT_EQ(outlook.partition.bound_by, model::SourceId(2)) << "30 ms for each order";
  double tokens = 0;
  for (std::size_t i = 0; i < 3; ++i) tokens += outlook.demands[i].samples * costs[i].tokens;
  EXPECT_NEAR(tokens, static_cast<double>(measuring.corpus.shape().step_tokens), 1e-6);
}

TEST(LoaderOutlook, IsWhatARunThatIsWaitedForComesTo) {
  Measuring measuring;
  const auto graph = measuring.corpus.graph(planning::Balance::kNone);
  const auto costs = measuring.measure(std::chrono::hours(1)).value();
  const LoaderScalerOptions options{.limits = {.cores = 4}};
  const auto outlook =
      foresee_loaders(*graph.mix, measuring.corpus, costs, options.limits, options.horizon_steps)
          .value();
  LoaderScaler scaler(mix_of_records(*graph.mix, measuring.corpus), 1, options);
  std::optional<ScaleChange> change;
  for (std::uint64_t step = 0; step < 20 && !change; ++step) {
    change = scaler.after({.step = model::Step(step),
                           .members = {},
                           .took = milliseconds(10),
                           .waited = milliseconds(10)},
                          costs, {});
  }
  ASSERT_TRUE(change);
  EXPECT_EQ(change->partition, outlook.partition);
}

TEST(LoaderOutlook, LoadersHaveHalfOfTheMemory) {
  PipelineConfig config;
  config.limits.memory_bytes = 64 << 20;
  EXPECT_EQ(loader_limits(config, 3).memory_bytes, 32U << 20);
  EXPECT_EQ(loader_limits(config, 3).cores, 3U);
  config.limits.memory_bytes = 1;
  EXPECT_EQ(loader_limits(config, 3).memory_bytes, 1U);
}

}  // namespace
}  // namespace batchloom::control
