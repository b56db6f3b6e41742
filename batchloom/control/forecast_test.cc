// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "batchloom/base/real_runtime.h"
#include "batchloom/construction/corpus_testing.h"

namespace batchloom::control {
namespace {

using construction::Corpus;
using planning::Balance;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::Gt;
using testing::Le;
using testing::Lt;

class ForecastTest : public testing::Test {
 protected:
  Result<Forecast> try_forecast(std::uint64_t steps, const CallOptions& call = {}) {
    return forecast({graph_, corpus_, topology_}, steps, *runtime_, call);
  }

  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  Corpus corpus_{{.seed = 5}};
  planning::GraphSpec graph_ = corpus_.graph(Balance::kTwoLevel);
  const model::Topology topology_ = model::Topology::parse("dp=3").value();
};

TEST_F(ForecastTest, CountsWhatStepsHold) {
  const auto steps = corpus_.plan(Balance::kTwoLevel, "dp=3", 1000);
  ASSERT_GT(steps.size(), 3U);
  const Forecast all = try_forecast(1000).value();
  EXPECT_TRUE(all.sources_stop);
  EXPECT_EQ(all.steps, steps.size());
  std::vector<SourceForecast> sources(corpus_.sources().size());
  std::uint64_t tokens = 0;
  std::uint64_t most_bytes = 0;
  for (const planning::PlannedStep& step : steps) {
    std::uint64_t bytes = 0;
    for (const model::SampleMeta& member : step.members) {
      bytes += loaded_bytes(member, {});
      SourceForecast& source = sources[member.id.source.value];
      ++source.samples;
      source.tokens += member.tokens;
      source.first_step = source.first_step.value_or(step.step);
      source.last_step = step.step;
      tokens += member.tokens;
    }
    most_bytes = std::max(most_bytes, bytes);
  }
  EXPECT_EQ(all.tokens, tokens);
  EXPECT_EQ(all.largest_step_bytes, most_bytes);
  EXPECT_THAT(all.sources, Each(Field(&SourceForecast::passes, Le(1))));
  EXPECT_THAT(all.sources, Contains(Field(&SourceForecast::passes, 1))) << "which stops";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(all.sources[i].samples, sources[i].samples) << i;
    EXPECT_EQ(all.sources[i].tokens, sources[i].tokens) << i;
    EXPECT_EQ(all.sources[i].first_step, sources[i].first_step) << i;
    EXPECT_EQ(all.sources[i].last_step, sources[i].last_step) << i;
  }
}

TEST_F(ForecastTest, EndsWithTheStepsThatWereAskedFor) {
  const Forecast two = try_forecast(2).value();
  EXPECT_EQ(two.steps, 2U);
  EXPECT_FALSE(two.sources_stop);
  EXPECT_THAT(two.sources, Each(Field(&SourceForecast::passes, AllOf(Gt(0), Lt(1)))));
  const Forecast none = try_forecast(0).value();
  EXPECT_EQ(none.steps + none.samples + none.tokens, 0U);
  EXPECT_TRUE(none.lengths.empty());
}

TEST_F(ForecastTest, BandsOfLengthsHoldEverySampleOnce) {
  const Forecast all = try_forecast(1000).value();
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  std::uint64_t below = all.lengths.front().tokens_max / 2;
  for (const LengthBand& band : all.lengths) {
    EXPECT_EQ(band.tokens_max, std::max<std::uint64_t>(2 * below, 1));
    EXPECT_GT(band.tokens, band.samples * below);
    EXPECT_LE(band.tokens, band.samples * band.tokens_max);
    samples += band.samples;
    tokens += band.tokens;
    below = band.tokens_max;
  }
  EXPECT_EQ(samples, all.samples);
  EXPECT_EQ(tokens, all.tokens);
  EXPECT_EQ(std::bit_ceil(all.longest_tokens), all.lengths.back().tokens_max);
}

TEST_F(ForecastTest, SaysWhatBalancingIsGoodFor) {
  const Forecast all = try_forecast(1000).value();
  EXPECT_EQ(all.imbalance_before.steps, all.steps);
  EXPECT_GT(all.imbalance_before.mean, all.imbalance_after.mean);
  EXPECT_GE(all.imbalance_after.mean, 1);
  EXPECT_GE(all.imbalance_after.worst, all.imbalance_after.mean);
  graph_ = corpus_.graph(Balance::kHdp);
  const Forecast bounded = try_forecast(1000).value();
  EXPECT_EQ(bounded.gap.steps, bounded.steps);
  EXPECT_GE(bounded.gap.worst, bounded.gap.mean);
  EXPECT_GE(bounded.gap.mean, 1);
}

TEST_F(ForecastTest, EndsByItsCall) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(try_forecast(10, {.deadline = kNever, .stop = stop.get_token()})
                  .status()
                  .is(ErrorKind::kCancelled));
}

}  // namespace
}  // namespace batchloom::control
