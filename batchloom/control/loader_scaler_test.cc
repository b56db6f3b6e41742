// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace batchloom::control {
namespace {

using planning::Ramp;
using planning::Schedule;
using planning::Weight;
using testing::HasSubstr;

constexpr std::uint64_t kStepSamples = 100;

/// A cheap source, and one whose samples take 25 times as long; of all samples so many percent.
planning::MixSpec cheap_and_dear(Schedule cheap, Schedule dear) {
  planning::MixSpec mix{.unit = planning::StepUnit::kSamples, .units_per_step = kStepSamples};
  mix.sources = {{.name = "cheap", .weight = std::move(cheap)},
                 {.name = "dear", .weight = std::move(dear)}};
  return mix;
}

SampleCost taking(double sample_s) {
  return {.samples = 64, .thread_s = sample_s, .cpu_s = sample_s, .tokens = 10, .bytes = 10};
}
const std::vector<SampleCost> kCosts = {taking(0.0002), taking(0.005)};

/// The samples of a step, as a mixture would draw them.
std::vector<model::SampleMeta> members_of(const planning::MixSpec& mix, model::Step step) {
  const double cheap = static_cast<double>(mix.sources[0].weight.at(step).value);
  const double dear = static_cast<double>(mix.sources[1].weight.at(step).value);
  const auto of_dear = static_cast<std::size_t>(
      std::llround(static_cast<double>(kStepSamples) * dear / (cheap + dear)));
  std::vector<model::SampleMeta> members(kStepSamples);
  for (std::size_t i = 0; i < of_dear; ++i) members[i].id.source = model::SourceId(1);
  return members;
}

Duration duration_of(double time_s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time_s));
}

/// Loaders and a trainer in virtual time: the trainer takes a step every kTrainer seconds, or as
/// soon as it is loaded; a step is asked for when it is `lead` ahead of the trainer. Threads take
/// orders of kOrderSamples samples as they come, and each has a core.
class VirtualRun {
 public:
  static constexpr double kTrainer = 0.1;
  static constexpr std::size_t kOrderSamples = 5;

  struct Shape {
    std::size_t lead = 4;
    std::uint32_t threads = 1;
    std::optional<LoaderScalerOptions> scaling = {};
  };

  VirtualRun(const planning::MixSpec& mix, const Shape& shape, std::uint64_t steps)
      : shape_(shape), free_at_(shape.threads, 0) {
    std::optional<LoaderScaler> scaler;
    if (shape.scaling) scaler.emplace(mix, shape.threads, *shape.scaling);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto members = members_of(mix, model::Step(step));
      const StepSeen seen = bring(model::Step(step), members);
      if (!scaler) continue;
      const auto change = scaler->after(seen, kCosts, {});
      if (change) resize(change->partition.threads);
    }
  }

  double stalled_s() const { return stalled_s_; }
  std::size_t threads() const { return free_at_.size(); }

 private:
  StepSeen bring(model::Step step, std::span<const model::SampleMeta> members) {
    const std::size_t number = step.value;
    const double asked = asked_at(number);
    double done = asked;
    for (std::size_t first = 0; first < members.size(); first += kOrderSamples) {
      const auto order = members.subspan(first, std::min(kOrderSamples, members.size() - first));
      const auto thread = std::ranges::min_element(free_at_);
      *thread = std::max(*thread, asked);
      for (const model::SampleMeta& sample : order) {
        *thread += kCosts[sample.id.source.value].thread_s;
      }
      done = std::max(done, *thread);
    }
    const double looked = std::max(handed_on_, asked);
    const bool behind = 2 * steps_asked_by(number, looked) > shape_.lead;
    const double now = std::max(looked, done);
    const StepSeen seen{.step = step,
                        .members = members,
                        .took = duration_of(now - handed_on_),
                        .waited = duration_of(behind ? now - looked : 0)};
    handed_on_ = now;
    const double due = taken_.empty() ? now : taken_.back() + kTrainer;
    stalled_s_ += std::max(now - due, 0.0);
    taken_.push_back(std::max(now, due));
    return seen;
  }

  double asked_at(std::size_t number) const {
    return number < shape_.lead ? 0 : taken_[number - shape_.lead];
  }

  /// From `first` on, of those that may be asked for.
  std::size_t steps_asked_by(std::size_t first, double time) const {
    std::size_t count = 0;
    for (std::size_t i = first; i < taken_.size() + shape_.lead; ++i) {
      if (asked_at(i) <= time) ++count;
    }
    return count;
  }

  void resize(std::size_t threads) {
    std::ranges::sort(free_at_, std::ranges::greater());  // Who is free first goes first.
    free_at_.resize(threads, handed_on_);
  }

  const Shape shape_;
  std::vector<double> free_at_;  ///< By thread.
  std::vector<double> taken_;    ///< By step.
  double handed_on_ = 0;
  double stalled_s_ = 0;
};

LoaderScalerOptions on_16_cores(std::uint64_t horizon_steps = 84) {
  return {.limits = {.cores = 16}, .horizon_steps = horizon_steps};
}

double stalled_s(const planning::MixSpec& mix, const std::optional<LoaderScalerOptions>& scaling) {
  return VirtualRun(mix, {.scaling = scaling}, 800).stalled_s();
}

TEST(LoaderScaler, ASourceThatGrowsSlowlyStarvesNobody) {
  const auto ramp = [](std::uint64_t from, std::uint64_t to) {
    return Schedule::create(
               {{model::Step(0), Weight(from)}, {model::Step(500), Weight(to), Ramp::kLinear}})
        .value();
  };
  const auto mix = cheap_and_dear(ramp(99, 40), ramp(1, 60));
  EXPECT_GT(stalled_s(mix, {}), 50) << "one thread for three threads' work";
  EXPECT_EQ(stalled_s(mix, on_16_cores()), 0);
}

TEST(LoaderScaler, ASourceThatGrowsAtOnceStarvesOnlyThoseThatDoNotLookAhead) {
  const auto jump = [](std::uint64_t from, std::uint64_t to) {
    return Schedule::create({{model::Step(0), Weight(from)}, {model::Step(300), Weight(to)}})
        .value();
  };
  const auto mix = cheap_and_dear(jump(99, 40), jump(1, 60));
  const double never = stalled_s(mix, {});
  const double late = stalled_s(mix, on_16_cores(1));
  EXPECT_GT(late, 0);
  EXPECT_LT(late, never / 20);
  EXPECT_EQ(stalled_s(mix, on_16_cores()), 0);
}

/// A scaler over one source, and steps of it that each take `took`.
class ScalerTest : public testing::Test {
 protected:
  explicit ScalerTest(std::uint32_t threads = 4) : scaler_(one_source(), threads, options()) {}

  static planning::MixSpec one_source() {
    planning::MixSpec mix{.unit = planning::StepUnit::kSamples, .units_per_step = 10};
    mix.sources = {{.name = "docs", .weight = Schedule(Weight(1))}};
    return mix;
  }
  static LoaderScalerOptions options() { return {.limits = {.cores = 16}}; }

  /// Of `samples_` samples with 10 ms each.
  std::optional<ScaleChange> step(double took_s, double waited_s = 0) {
    const std::vector<model::SampleMeta> members(samples_);
    return scaler_.after({.step = model::Step(number_++),
                          .members = members,
                          .took = duration_of(took_s),
                          .waited = duration_of(waited_s)},
                         costs_, {});
  }

  /// The first change within so many steps, and after how many.
  std::optional<std::uint32_t> steps_until_change(double took_s, std::uint32_t most) {
    for (std::uint32_t steps = 1; steps <= most; ++steps) {
      change_ = step(took_s);
      if (change_) return steps;
    }
    return std::nullopt;
  }

  /// Its threads are divided, and it may change them again.
  void settle(double took_s) {
    ASSERT_TRUE(steps_until_change(took_s, 30));
    ASSERT_EQ(change_->partition.threads, 4U);
    for (int i = 0; i < 50; ++i) ASSERT_FALSE(step(took_s)) << i;
  }

  std::vector<SampleCost> costs_ = {taking(0.01)};
  LoaderScaler scaler_;
  std::optional<ScaleChange> change_;
  std::size_t samples_ = 10;
  std::uint64_t number_ = 0;
};

TEST_F(ScalerTest, AHighLoadForAWhileTakesMoreThreads) {
  // 100 ms of work in steps of 20 ms on 4 threads: 5 busy, 6.25 with headroom, so 8.
  const auto steps = steps_until_change(0.02, 100);
  ASSERT_TRUE(steps);
  EXPECT_GE(*steps, 17U) << "10 in a row, from the 8th on";
  EXPECT_LE(*steps, 30U);
  EXPECT_EQ(scaler_.threads(), 8U);
  EXPECT_EQ(change_->partition.threads, 8U);
  EXPECT_EQ(change_->why, "load 1.25, most of it by source 'docs'");
}

TEST_F(ScalerTest, OneStepThatIsWaitedForDoesSoAtOnce) {
  settle(0.05);
  const auto change = step(0.05, 0.01);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->partition.threads, 16U) << "who waits for loaders has no pace: all cores";
  EXPECT_THAT(change->why, HasSubstr("and steps wait for samples"));
}

TEST(LoaderScaler, LoadersAreBehindWhileLessThanHalfOfTheLeadIsLoaded) {
  EXPECT_FALSE(loaders_are_behind(1, 32)) << "as far ahead as may be";
  EXPECT_FALSE(loaders_are_behind(16, 32));
  EXPECT_TRUE(loaders_are_behind(17, 32));
  EXPECT_TRUE(loaders_are_behind(1, 1));
  EXPECT_TRUE(loaders_are_behind(1, std::nullopt)) << "nobody's pace";
}

TEST_F(ScalerTest, AWaitThatIsShortIsNone) {
  settle(0.05);
  EXPECT_FALSE(step(0.05, 0.002));
}

TEST_F(ScalerTest, ALowLoadForLongTakesFewer) {
  // Steps of 250 ms: 0.4 busy, of 4.
  const auto steps = steps_until_change(0.25, 300);
  ASSERT_TRUE(steps);
  EXPECT_GE(*steps, 200U);
  EXPECT_EQ(scaler_.threads(), 1U);
  EXPECT_THAT(change_->why, HasSubstr("load 0.10 for 2"));
}

TEST_F(ScalerTest, APauseOfTrainersIsNotTheirPace) {
  settle(0.05);
  change_ = step(600);  // They evaluate.
  EXPECT_FALSE(change_);
  EXPECT_GT(scaler_.load(), 0.4);
  for (int i = 0; i < 15 && !change_; ++i) change_ = step(0.05, 0.01);
  ASSERT_TRUE(change_) << "steps are waited for";
  EXPECT_EQ(change_->partition.threads, 16U);
}

TEST_F(ScalerTest, APaceThatHasChangedIsReached) {
  settle(0.05);
  for (int i = 0; i < 100; ++i) step(5);
  EXPECT_LT(scaler_.load(), 0.02);
}

TEST_F(ScalerTest, StepsWithMoreSamplesThanTheMixSaysCountAsTheyAre) {
  settle(0.05);
  samples_ = 30;  // 300 ms of work in steps of 50 ms: 6 busy, 7.5 with headroom.
  ASSERT_TRUE(steps_until_change(0.05, 200));
  EXPECT_EQ(scaler_.threads(), 8U);
}

TEST_F(ScalerTest, AfterAChangeItWaitsForAWhile) {
  ASSERT_TRUE(steps_until_change(0.02, 100));
  EXPECT_EQ(scaler_.threads(), 8U);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(step(0.02, 0.02)) << i;
  EXPECT_TRUE(step(0.02, 0.02));
  EXPECT_EQ(scaler_.threads(), 16U);
}

TEST(LoaderScaler, ALoadThatAsksForNoOtherThreadsHasLanesAllTheSame) {
  const auto mix = cheap_and_dear(Schedule(Weight(1)), Schedule(Weight(1)));
  LoaderScaler scaler(mix, 8, {.limits = {.cores = 8}});
  // In steps of 1 s, of 50 samples each: 2.5 threads of 8 are on cores, and 1.25 wait for storage.
  std::vector<SampleCost> costs = {taking(0.05), taking(0.026)};
  costs[1].cpu_s = 0.001;
  std::vector<ScaleChange> changes;
  for (std::uint64_t step = 0; step < 300; ++step) {
    const auto members = members_of(mix, model::Step(step));
    const StepSeen seen{.step = model::Step(step), .members = members, .took = duration_of(1)};
    if (auto change = scaler.after(seen, costs, {})) changes.push_back(*std::move(change));
  }
  EXPECT_NEAR(scaler.load(), 0.475, 0.001);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].partition.threads, 8U);
  EXPECT_EQ(changes[0].partition.lanes.threads, (std::vector<std::uint32_t>{4, 2}));
  EXPECT_EQ(changes[0].partition.lanes.binds, (std::vector<bool>{false, true}));
}

TEST_F(ScalerTest, TheSameThreadsAreDividedOnceSourcesAreMeasured) {
  costs_ = {SampleCost()};
  EXPECT_EQ(steps_until_change(0.04, 300), std::nullopt) << "nothing is known of the source";
  costs_ = {taking(0.01)};
  // 2.5 busy, 3.1 with headroom: 4, which there are.
  ASSERT_TRUE(steps_until_change(0.04, 50));
  EXPECT_EQ(change_->partition.threads, 4U);
  EXPECT_EQ(change_->why, "sources are measured");
  EXPECT_EQ(steps_until_change(0.04, 500), std::nullopt) << "once";
}

}  // namespace
}  // namespace batchloom::control
