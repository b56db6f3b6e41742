// SPDX-License-Identifier: Apache-2.0
// How far sources are from their quotas, reckoned from the draws alone (QuotaBook).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "batchloom/base/random.h"
#include "batchloom/planning/mixture.h"
#include "batchloom/planning/mixture_testing.h"

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kPart = 64;
constexpr std::uint64_t kManyDraws = 1'000'000;

/// In thousandths, as QuotaBook has them.
constexpr std::int64_t kOneSample = 1'000;
constexpr std::int64_t kOnePart = 1'000 * kPart;

Weight any_weight(Random& random) {
  const bool small = random.below(3) != 0;
  return Weight(1 + random.below(small ? 1'000'000 : 1'000'000'000));
}

/// Always above 0. Points up to `step_max`.
Schedule any_schedule(Random& random, std::uint64_t step_max) {
  std::vector<WeightPoint> points = {{model::Step(0), any_weight(random)}};
  std::uint64_t step = 0;
  while (step < step_max && random.below(8) != 0) {
    step += 1 + random.below(step_max / 3 + 1);
    points.push_back({model::Step(step), any_weight(random), static_cast<Ramp>(random.below(3))});
  }
  return Schedule::create(points).value();
}

struct QuotaRun {
  StepUnit unit = StepUnit::kTokens;
  std::uint64_t seed = 0;
  std::size_t sources = 2;
  std::uint64_t schedule_steps = 0;  ///< Schedules change up to here; 0: weights are constant.
  std::uint64_t draws = kManyDraws;
  std::uint64_t live_every = 0;  ///< Steps between live updates of about half of the sources.
};

/// Draws, and keeps the book.
QuotaBook run_mixture(const QuotaRun& options) {
  Random random(options.seed);
  FakeLengths lengths = uneven_lengths(2 * kPart);
  MixtureConfig config{.seed = options.seed, .unit = options.unit, .max_sample_tokens = kPart};
  config.units_per_step =
      options.unit == StepUnit::kTokens ? kPart + random.below(2'000) : 1 + random.below(40);
  for (std::size_t i = 0; i < options.sources; ++i) {
    const Schedule weight = options.schedule_steps == 0
                                ? Schedule(any_weight(random))
                                : any_schedule(random, options.schedule_steps);
    config.sources.push_back(endless(1 + random.below(10'000), weight));
  }
  const auto mixture = Mixture::create(config, lengths).value();
  QuotaBook book(options.unit, options.sources);
  std::vector<std::optional<std::uint64_t>> updated(options.sources);
  std::vector<std::uint64_t> weights(options.sources);
  for (std::uint64_t draws = 0; draws < options.draws;) {
    const model::Step step = mixture->state().step;
    if (options.live_every != 0 && step.value % options.live_every == options.live_every - 1) {
      std::vector<SourceWeight> update;
      for (std::size_t i = random.below(2); i < options.sources; i += 1 + random.below(3)) {
        update.push_back({model::SourceId(static_cast<std::uint32_t>(i)), any_weight(random)});
        updated[i] = update.back().weight.value;
      }
      EXPECT_TRUE(mixture->set_weights(step, update).is_ok());
    }
    for (std::size_t i = 0; i < options.sources; ++i) {
      weights[i] = updated[i].value_or(config.sources[i].weight.at(step).value);
    }
    const MixtureStep drawn = *mixture->next_step().value();
    EXPECT_EQ(drawn.step, step);
    for (const Part& part : drawn.parts) book.add(part, weights);
    draws += drawn.parts.size();
  }
  for (std::size_t i = 0; i < options.sources; ++i) {
    const std::int64_t credit = mixture->state().sources[i].credit;
    EXPECT_NEAR(static_cast<double>(credit >> (share_bits(options.unit) - 10)) * 1'000 / 1'024,
                static_cast<double>(book.credit_milli(i)), 10);
  }
  return book;
}

TEST(MixtureQuota, SamplesStayWithinOne) {
  EXPECT_LE(run_mixture({.unit = StepUnit::kSamples, .seed = 1, .sources = 7}).off_milli(),
            kOneSample);
}

TEST(MixtureQuota, SamplesStayWithinOneWhileWeightsChange) {
  const QuotaBook book =
      run_mixture({.unit = StepUnit::kSamples, .seed = 2, .sources = 7, .schedule_steps = 50'000});
  EXPECT_LE(book.off_milli(), kOneSample);
  EXPECT_GE(book.off_milli(), kOneSample / 2) << "nothing was close to the bound";
}

TEST(MixtureQuota, TokensStayWithinOnePart) {
  const QuotaBook book = run_mixture({.seed = 3, .sources = 7});
  EXPECT_LE(book.off_milli(), kOnePart);
  EXPECT_GE(book.off_milli(), kOnePart / 2) << "nothing was close to the bound";
}

TEST(MixtureQuota, TokensStayWithinTwoPartsWhileWeightsChange) {
  EXPECT_LE(run_mixture({.seed = 4, .sources = 7, .schedule_steps = 20'000}).off_milli(),
            2 * kOnePart);
}

TEST(MixtureQuota, LiveUpdatesTakeOnePartMore) {
  EXPECT_LE(run_mixture({.seed = 5, .sources = 7, .live_every = 100}).off_milli(), 2 * kOnePart);
  EXPECT_LE(run_mixture({.unit = StepUnit::kSamples, .seed = 6, .sources = 7, .live_every = 100})
                .off_milli(),
            2 * kOneSample);
}

/// A mixture of two sources of one record, one of many, one of weight 0 and one without records.
/// The last two take part in nothing, whatever the empty one weighs. Counts draws by source.
QuotaBook run_with_odd_sources(StepUnit unit, std::vector<std::uint64_t>& draws_of) {
  FakeLengths lengths = uneven_lengths(2 * kPart);
  const MixtureConfig config{
      .seed = 7,
      .unit = unit,
      .units_per_step = 1'000,
      .max_sample_tokens = kPart,
      .sources = {endless(1, weighs(3)), endless(1, weighs(500)), endless(10'000, weighs(200)),
                  endless(500, weighs(0)), endless(0, weighs(10'000))}};
  const std::vector<std::uint64_t> weights = {3, 500, 200, 0, 0};
  const auto mixture = Mixture::create(config, lengths).value();
  QuotaBook book(unit, weights.size());
  draws_of.assign(weights.size(), 0);
  for (std::uint64_t draws = 0; draws < kManyDraws;) {
    const MixtureStep step = *mixture->next_step().value();
    for (const Part& part : step.parts) {
      book.add(part, weights);
      ++draws_of[part.id.source.value];
    }
    draws += step.parts.size();
  }
  return book;
}

TEST(MixtureQuota, SourcesOfOneRecordOfNoneAndOfWeightZeroDisturbNobody) {
  for (const StepUnit unit : {StepUnit::kSamples, StepUnit::kTokens}) {
    std::vector<std::uint64_t> draws_of;
    const QuotaBook book = run_with_odd_sources(unit, draws_of);
    EXPECT_LE(book.off_milli(), unit == StepUnit::kSamples ? kOneSample : kOnePart);
    EXPECT_EQ(draws_of[3], 0U);
    EXPECT_EQ(draws_of[4], 0U);
    EXPECT_GT(draws_of[0], 100U);
  }
}

QuotaRun small_run(StepUnit unit) {
  return {.unit = unit,
          .seed = *rc::gen::arbitrary<std::uint64_t>(),
          .sources = *rc::gen::inRange<std::size_t>(1, 40),
          .draws = 3'000};
}

RC_GTEST_PROP(MixtureQuotaProperty, SamplesWithinOneWhateverTheSchedules, ()) {
  QuotaRun options = small_run(StepUnit::kSamples);
  options.schedule_steps = *rc::gen::inRange<std::uint64_t>(0, 300);
  RC_ASSERT(run_mixture(options).off_milli() <= kOneSample);
}

RC_GTEST_PROP(MixtureQuotaProperty, TokensWithinOnePartWhateverTheWeights, ()) {
  RC_ASSERT(run_mixture(small_run(StepUnit::kTokens)).off_milli() <= kOnePart);
}

RC_GTEST_PROP(MixtureQuotaProperty, TokensWithinTwoPartsWhateverTheSchedules, ()) {
  QuotaRun options = small_run(StepUnit::kTokens);
  options.schedule_steps = *rc::gen::inRange<std::uint64_t>(1, 200);
  const QuotaBook book = run_mixture(options);
  RC_ASSERT(book.ahead_milli() <= kOnePart);
  RC_ASSERT(book.behind_milli() <= 2 * kOnePart);
}

/// Whether all credits are within `most` parts, and add up to 0.
bool credits_within(const MixtureState& state, std::int64_t most) {
  std::int64_t sum = 0;
  const std::int64_t limit = most * (max_credit(state.unit, state.max_sample_tokens) / 28);
  for (const SourceState& source : state.sources) {
    sum += source.credit;
    if (source.credit > limit || source.credit < -limit) return false;
  }
  return sum == 0;
}

/// What sources that took part no longer leave behind does not push the others away.
RC_GTEST_PROP(MixtureQuotaProperty, CreditsWithinTwoPartsWhereSourcesComeAndGo, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  FakeLengths lengths = uneven_lengths(2 * kPart);
  MixtureConfig config{.unit = *rc::gen::element(StepUnit::kTokens, StepUnit::kSamples),
                       .units_per_step = kPart + random.below(500),
                       .max_sample_tokens = kPart,
                       .sources = {endless(100, weighs(1'000'000))}};
  const int sources = *rc::gen::inRange(0, 60);
  for (int i = 0; i < sources; ++i) {
    std::vector<WeightPoint> points = {{model::Step(0), any_weight(random)}};
    while (random.below(6) != 0) {
      const Weight weight = random.below(2) == 0 ? Weight(0) : any_weight(random);
      points.push_back(
          {points.back().step + 1 + random.below(20), weight, static_cast<Ramp>(random.below(3))});
    }
    config.sources.push_back(endless(1 + random.below(200), Schedule::create(points).value()));
    if (random.below(2) == 0) config.sources.back().exhausted = Exhausted::kDrop;
  }
  const auto mixture = Mixture::create(config, lengths).value();
  for (int i = 0; i < 2'000; ++i) {
    RC_ASSERT(mixture->draw().is_ok());
    RC_ASSERT(credits_within(mixture->state(), 2));
  }
}

/// The case in which earliest deadlines alone would starve a source: many of small weight are all
/// nearly a sample behind, and a live update makes them overdue, just as one becomes heavy.
TEST(MixtureQuota, ManyOverdueSourcesDoNotStarveOneThatBecameHeavy) {
  constexpr std::uint32_t kSources = 200;
  FakeLengths lengths = uneven_lengths(kPart);
  MixtureConfig config{.unit = StepUnit::kSamples, .units_per_step = 1, .max_sample_tokens = kPart};
  for (std::uint32_t i = 0; i < kSources; ++i) config.sources.push_back(endless(10, weighs(100)));
  config.sources.push_back(endless(10, weighs(1)));
  const auto mixture = Mixture::create(config, lengths).value();
  QuotaBook book(StepUnit::kSamples, kSources + 1);
  std::vector<std::uint64_t> weights(kSources + 1, 100);
  weights.back() = 1;
  for (std::uint32_t step = 0; step < 2'000; ++step) {
    if (step == kSources / 2) {  // Those that were not drawn become light, and overdue.
      std::vector<SourceWeight> update;
      for (std::uint32_t i = 0; i < kSources; ++i) {
        if (i < kSources / 2) update.push_back({model::SourceId(i), Weight(1)});
      }
      update.push_back({model::SourceId(kSources), Weight(10'000)});
      for (const auto& [source, weight] : update) weights[source.value] = weight.value;
      ASSERT_TRUE(mixture->set_weights(model::Step(step), update).is_ok());
    }
    book.add(mixture->next_step().value()->parts.at(0), weights);
  }
  EXPECT_LE(book.off_milli(), 2 * kOneSample);
}

/// The same adversary, as a schedule: each source weighs nearly nothing soon after its first draw.
/// Parts of `tokens` tokens; a step has one of them.
QuotaBook run_with_sources_that_drop(std::uint32_t tokens, std::uint32_t later) {
  constexpr std::uint32_t kSources = 600;
  FakeLengths lengths([tokens](std::uint32_t, std::uint64_t) { return tokens; });
  MixtureConfig config{.units_per_step = kPart, .max_sample_tokens = kPart};
  for (std::uint32_t i = 0; i < kSources; ++i) {
    const std::vector<WeightPoint> points = {{model::Step(0), Weight(1'000'000'000)},
                                             {model::Step(i + later), Weight(100'000)}};
    config.sources.push_back(endless(10, Schedule::create(points).value()));
  }
  const auto mixture = Mixture::create(config, lengths).value();
  QuotaBook book(StepUnit::kTokens, kSources);
  std::vector<std::uint64_t> weights(kSources);
  for (std::uint32_t i = 0; i < kSources + later; ++i) {
    const model::Step step = mixture->state().step;
    for (std::uint32_t source = 0; source < kSources; ++source) {
      weights[source] = config.sources[source].weight.at(step).value;
    }
    const MixtureStep drawn = *mixture->next_step().value();
    for (const Part& part : drawn.parts) book.add(part, weights);
  }
  return book;
}

TEST(MixtureQuota, SchedulesOfManySourcesAreForeseenFromTheStart) {
  for (const std::uint32_t tokens : {kPart, kPart / 2 + 1}) {
    for (const std::uint32_t later : {1U, 10U, 70U, 200U}) {
      const QuotaBook book = run_with_sources_that_drop(tokens, later);
      EXPECT_LE(book.behind_milli(), 2 * kOnePart) << tokens << ", " << later;
      EXPECT_LE(book.ahead_milli(), kOnePart) << tokens << ", " << later;
    }
  }
}

/// No rule without foresight can do better than ln(n) against this; the bound is 2 H(n).
TEST(MixtureQuota, AnAdversaryGetsNoFurtherThanProven) {
  constexpr std::uint32_t kSources = 128;
  FakeLengths lengths = uneven_lengths(kPart);
  MixtureConfig config{.unit = StepUnit::kSamples, .units_per_step = 1, .max_sample_tokens = kPart};
  std::vector<std::uint64_t> weights(kSources, 1'000'000'000);
  for (const std::uint64_t weight : weights) config.sources.push_back(endless(10, weighs(weight)));
  const auto mixture = Mixture::create(config, lengths).value();
  QuotaBook book(StepUnit::kSamples, kSources);
  for (std::uint32_t step = 0; step + 1 < kSources; ++step) {
    const Part part = mixture->next_step().value()->parts.at(0);
    book.add(part, weights);
    weights[part.id.source.value] = 1;  // Whoever was drawn weighs nearly nothing.
    ASSERT_TRUE(
        mixture->set_weights(model::Step(step + 1), {{{part.id.source, Weight(1)}}}).is_ok());
  }
  double harmonic = 0;
  for (std::uint32_t i = 1; i <= kSources; ++i) harmonic += 1.0 / i;
  EXPECT_LT(static_cast<double>(book.behind_milli()), 1'000 * 2 * harmonic);
  EXPECT_GT(static_cast<double>(book.behind_milli()), 1'000 * (harmonic - 1.6));
  EXPECT_LE(book.ahead_milli(), kOneSample);
}

}  // namespace
}  // namespace batchloom::planning
