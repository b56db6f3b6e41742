// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/mixture.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>

#include "batchloom/planning/mixture_testing.h"

namespace batchloom::planning {
namespace {

MixtureConfig samples_config(std::uint64_t per_step, std::vector<MixtureSource> sources) {
  return {.seed = 17,
          .unit = StepUnit::kSamples,
          .units_per_step = per_step,
          .max_sample_tokens = 100,
          .sources = std::move(sources)};
}

MixtureConfig tokens_config(std::uint64_t per_step, std::uint32_t max_sample_tokens,
                            std::vector<MixtureSource> sources) {
  return {.seed = 17,
          .unit = StepUnit::kTokens,
          .units_per_step = per_step,
          .max_sample_tokens = max_sample_tokens,
          .sources = std::move(sources)};
}

MixtureSource in_file_order(std::uint64_t records, std::uint64_t weight, Exhausted exhausted) {
  return {
      .records = records, .weight = weighs(weight), .exhausted = exhausted, .order = Order::kFile};
}

FakeLengths all_of_length(std::uint32_t tokens) {
  return FakeLengths([tokens](std::uint32_t, std::uint64_t) { return tokens; });
}

/// "source:epoch:index:part" of each, step by step, until the stream ends or `steps` are drawn.
std::vector<std::vector<std::string>> ids_of(Mixture& mixture, std::size_t steps = 1'000) {
  std::vector<std::vector<std::string>> out;
  while (out.size() < steps) {
    const std::optional<MixtureStep> step = mixture.next_step().value();
    if (!step) break;
    for (out.emplace_back(); const Part& part : step->parts) {
      out.back().push_back(model::to_string(part.id));
    }
  }
  return out;
}

using Ids = std::vector<std::vector<std::string>>;

TEST(Mixture, DrawsSourcesByTheirWeights) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(samples_config(4, {in_file_order(100, 3, Exhausted::kStop),
                                                          in_file_order(100, 1, Exhausted::kStop)}),
                                       lengths)
                           .value();
  const MixtureStep step = *mixture->next_step().value();
  EXPECT_EQ(step.step, model::Step(0));
  EXPECT_EQ(step.tokens, 40U);
  EXPECT_FALSE(step.last);
  EXPECT_EQ(ids_of(*mixture, 2), (Ids{{"0:0:3:0", "1:0:1:0", "0:0:4:0", "0:0:5:0"},
                                      {"0:0:6:0", "1:0:2:0", "0:0:7:0", "0:0:8:0"}}));
}

TEST(Mixture, CutsRecordsAtTheLargestSampleAndNowhereElse) {
  FakeLengths lengths = FakeLengths([](std::uint32_t source, std::uint64_t record) {
    return source == 0 ? 25U : static_cast<std::uint32_t>(9 + record);
  });
  const auto mixture = Mixture::create(tokens_config(40, 10,
                                                     {in_file_order(2, 1, Exhausted::kStop),
                                                      in_file_order(9, 1, Exhausted::kStop)}),
                                       lengths)
                           .value();
  std::vector<Part> of_first;
  while (const std::optional<Draw> draw = mixture->draw().value()) {
    EXPECT_LE(draw->part.tokens, 10U);
    if (draw->part.id.source.value == 0) of_first.push_back(draw->part);
  }
  const auto part = [](std::uint64_t record, std::uint32_t index, std::uint32_t tokens) {
    return Part{
        {model::SourceId(0), model::Epoch(0), model::RecordIndex(record), model::PartIndex(index)},
        tokens,
        std::uint64_t{index} * 10};
  };
  EXPECT_EQ(of_first, (std::vector{part(0, 0, 10), part(0, 1, 10), part(0, 2, 5), part(1, 0, 10),
                                   part(1, 1, 10), part(1, 2, 5)}));
}

TEST(Mixture, AStepOfTokensTakesPartsUntilTheNextDoesNotFit) {
  FakeLengths lengths = uneven_lengths(40);
  const auto config = tokens_config(100, 40, {endless(50, weighs(3)), endless(70, weighs(2))});
  const auto one_by_one = Mixture::create(config, lengths).value();
  const auto by_steps = Mixture::create(config, lengths).value();
  std::optional<Draw> draw = one_by_one->draw().value();
  for (std::uint64_t number = 0; number < 500; ++number) {
    const MixtureStep step = *by_steps->next_step().value();
    EXPECT_EQ(step.step, model::Step(number));
    std::uint64_t tokens = 0;
    for (const Part& part : step.parts) {
      ASSERT_EQ(*draw, (Draw{step.step, part}));
      tokens += part.tokens;
      draw = one_by_one->draw().value();
    }
    EXPECT_EQ(step.tokens, tokens);
    EXPECT_LE(tokens, 100U);
    EXPECT_GT(tokens + draw->part.tokens, 100U) << "the first part of the next step would fit";
  }
}

TEST(Mixture, AStepGoesOnWhereSinglePartsWereDrawn) {
  FakeLengths lengths = uneven_lengths(40);
  const auto config = tokens_config(100, 40, {endless(50, weighs(3)), endless(70, weighs(2))});
  const auto one_by_one = Mixture::create(config, lengths).value();
  const auto mixed = Mixture::create(config, lengths).value();
  Draw draw = *one_by_one->draw().value();
  for (std::uint64_t i = 0; i < 300; ++i) {
    for (std::uint64_t single = 0; single < i % 7; ++single) {
      ASSERT_EQ(*mixed->draw().value(), draw);
      draw = *one_by_one->draw().value();
    }
    const std::optional<MixtureStep> rest = mixed->next_step().value();
    ASSERT_TRUE(rest.has_value());
    for (const Part& part : rest->parts) {
      ASSERT_EQ((Draw{rest->step, part}), draw);
      draw = *one_by_one->draw().value();
    }
    ASSERT_GT(draw.step, rest->step);
  }
}

/// The order in which parts are drawn does not depend on the size of steps while weights stay.
TEST(Mixture, TheOrderIsTheSameForOtherSteps) {
  FakeLengths lengths = uneven_lengths(40);
  const std::vector sources = {endless(50, weighs(3)), endless(70, weighs(2)),
                               endless(1, weighs(1))};
  const auto small = Mixture::create(tokens_config(40, 40, sources), lengths).value();
  const auto large = Mixture::create(tokens_config(999, 40, sources), lengths).value();
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(small->draw().value()->part, large->draw().value()->part) << i;
  }
}

TEST(Mixture, APassHasEachRecordOnceInAnOrderOfItsOwn) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture =
      Mixture::create(samples_config(30, {endless(30, weighs(1))}), lengths).value();
  const Ids passes = ids_of(*mixture, 3);
  std::set<std::string> all;
  for (const auto& pass : passes) all.insert(pass.begin(), pass.end());
  EXPECT_EQ(all.size(), 90U);
  for (std::uint64_t i = 0; i < 30; ++i) {
    EXPECT_TRUE(all.contains("0:2:" + std::to_string(i) + ":0")) << i;
  }
  const auto first_of = [&](std::size_t pass) { return passes[pass][0].substr(4); };
  EXPECT_FALSE(first_of(0) == first_of(1) && first_of(1) == first_of(2));
}

TEST(Mixture, RecordsWithoutTokensAreLeftOut) {
  FakeLengths lengths =
      FakeLengths([](std::uint32_t, std::uint64_t record) { return record % 3 == 1 ? 7U : 0U; });
  const auto mixture =
      Mixture::create(samples_config(2, {in_file_order(8, 1, Exhausted::kStop)}), lengths).value();
  EXPECT_EQ(ids_of(*mixture), (Ids{{"0:0:1:0", "0:0:4:0"}, {"0:0:7:0"}}));
}

TEST(Mixture, OneRecordWithTokensIsEnough) {
  FakeLengths lengths =
      FakeLengths([](std::uint32_t, std::uint64_t record) { return record == 3 ? 7U : 0U; });
  const auto mixture = Mixture::create(samples_config(1, {endless(9, weighs(1))}), lengths).value();
  for (std::uint32_t pass = 0; pass < 200; ++pass) {
    const Part part = mixture->next_step().value()->parts.at(0);
    EXPECT_EQ(model::to_string(part.id), "0:" + std::to_string(pass) + ":3:0");
  }
}

TEST(Mixture, ASourceOfRecordsWithoutTokensIsRefused) {
  FakeLengths lengths = all_of_length(0);
  const auto mixture = Mixture::create(samples_config(2, {endless(8, weighs(1))}), lengths).value();
  const auto step = mixture->next_step();
  EXPECT_TRUE(step.is(ErrorKind::kInvalid));
  EXPECT_NE(step.status().message().find("none of the 8 records of source 0 has a token"),
            std::string::npos)
      << step.status().to_string();
}

TEST(Mixture, StopEndsTheStreamWhenItIsTheSourcesTurn) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(samples_config(4, {in_file_order(100, 1, Exhausted::kStop),
                                                          in_file_order(3, 1, Exhausted::kStop)}),
                                       lengths)
                           .value();
  EXPECT_EQ(mixture->next_step().value()->parts.size(), 4U);
  const MixtureStep last = *mixture->next_step().value();
  EXPECT_EQ(last.parts.size(), 3U) << "the fourth would be of source 1";
  EXPECT_TRUE(last.last);
  EXPECT_EQ(mixture->next_step().value(), std::nullopt);
  EXPECT_EQ(mixture->draw().value(), std::nullopt);
  EXPECT_TRUE(mixture->state().ended);
}

TEST(Mixture, RepeatStopsAfterItsPasses) {
  FakeLengths lengths = all_of_length(10);
  MixtureSource source = in_file_order(2, 1, Exhausted::kRepeat);
  source.epochs = 2;
  const auto mixture = Mixture::create(samples_config(3, {source}), lengths).value();
  EXPECT_EQ(ids_of(*mixture), (Ids{{"0:0:0:0", "0:0:1:0", "0:1:0:0"}, {"0:1:1:0"}}));
}

TEST(Mixture, DropGivesItsShareToTheOthers) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(samples_config(4, {in_file_order(100, 2, Exhausted::kDrop),
                                                          in_file_order(2, 4, Exhausted::kDrop),
                                                          in_file_order(100, 2, Exhausted::kDrop)}),
                                       lengths)
                           .value();
  const Ids steps = ids_of(*mixture);
  std::map<char, int> counts;
  for (const auto& step : steps) {
    for (const auto& id : step) ++counts[id[0]];
  }
  EXPECT_EQ(counts, (std::map<char, int>{{'0', 100}, {'1', 2}, {'2', 100}}));
  EXPECT_EQ(steps.size(), 51U);
  for (std::size_t i = 1; i < 49; ++i) {
    int of_first = 0;
    for (const auto& id : steps[i]) of_first += id[0] == '0';
    EXPECT_EQ(of_first, 2) << "step " << i;
  }
  EXPECT_EQ(mixture->next_step().value(), std::nullopt) << "all are dropped";
}

TEST(Mixture, ErrorFailsWhenItIsTheSourcesTurnAndChangesNothing) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(samples_config(4, {in_file_order(100, 1, Exhausted::kStop),
                                                          in_file_order(3, 1, Exhausted::kError)}),
                                       lengths)
                           .value();
  ASSERT_TRUE(mixture->next_step().is_ok());
  const MixtureState before = mixture->state();
  for (int i = 0; i < 2; ++i) {
    const auto step = mixture->next_step();
    EXPECT_TRUE(step.is(ErrorKind::kExhausted)) << step.status().to_string();
    EXPECT_NE(step.status().message().find("source 1 has no more records in step 1, after 3"),
              std::string::npos)
        << step.status().message();
    EXPECT_EQ(mixture->state(), before);
  }
}

TEST(Mixture, AnErrorOfTheIndexChangesNothing) {
  FakeLengths lengths = uneven_lengths(40);
  const auto config = tokens_config(100, 40, {endless(50, weighs(3)), endless(7, weighs(2))});
  const auto mixture = Mixture::create(config, lengths).value();
  const auto undisturbed = Mixture::create(config, lengths).value();
  for (int i = 0; i < 20; ++i) {
    lengths.failing = true;
    const MixtureState before = mixture->state();
    EXPECT_TRUE(mixture->next_step().is(ErrorKind::kUnavailable));
    EXPECT_TRUE(mixture->draw().is(ErrorKind::kUnavailable));
    EXPECT_EQ(mixture->state(), before);
    lengths.failing = false;
    EXPECT_EQ(mixture->next_step().value(), undisturbed->next_step().value());
  }
}

TEST(Mixture, ASourceOfWeightZeroIsNotDrawn) {
  FakeLengths lengths = uneven_lengths(40);
  const Schedule fades = Schedule::create({{model::Step(0), Weight(1'000)},
                                           {model::Step(20), Weight(0), Ramp::kLinear},
                                           {model::Step(60), Weight(10)}})
                             .value();
  for (const StepUnit unit : {StepUnit::kTokens, StepUnit::kSamples}) {
    MixtureConfig config = tokens_config(200, 40, {endless(9, fades), endless(9, weighs(0))});
    config.unit = unit;
    for (int i = 0; i < 20; ++i) config.sources.push_back(endless(9, weighs(100)));
    const auto mixture = Mixture::create(config, lengths).value();
    std::uint64_t of_first = 0;
    for (std::uint64_t step = 0; step < 300; ++step) {
      const MixtureStep drawn = *mixture->next_step().value();
      for (const Part& part : drawn.parts) {
        EXPECT_NE(part.id.source.value, 1U);
        if (part.id.source.value != 0) continue;
        EXPECT_TRUE(step < 20 || step >= 60) << step;
        of_first += step >= 60;
      }
    }
    EXPECT_GT(of_first, 3U) << "it came back";
  }
}

/// Those that stay keep to their shares among each other, whatever is forgotten of one that goes.
TEST(Mixture, SourcesThatComeAndGoDoNotDisturbTheOthers) {
  FakeLengths lengths = all_of_length(1);
  std::vector<MixtureSource> sources;
  for (std::uint64_t i = 0; i < 40; ++i) {
    std::vector<WeightPoint> points = {{model::Step(0), Weight(10)}};
    for (std::uint64_t at = 1 + i; at < 2'000; at += 7 + i) {
      points.push_back({model::Step(at), Weight(points.size() % 2 == 0 ? 10 : 0)});
    }
    sources.push_back(endless(5, i < 4 ? weighs(10) : Schedule::create(points).value()));
  }
  const auto mixture = Mixture::create(samples_config(10, sources), lengths).value();
  std::vector<std::int64_t> drawn(4);
  for (int step = 0; step < 2'000; ++step) {
    const MixtureStep parts = *mixture->next_step().value();
    for (const Part& part : parts.parts) {
      if (part.id.source.value < 4) ++drawn[part.id.source.value];
    }
  }
  const auto [least, most] = std::ranges::minmax(drawn);
  EXPECT_LT(most - least, 100) << "of about " << most;
}

TEST(Mixture, EmptyAndTinySourcesWork) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture =
      Mixture::create(
          samples_config(3, {endless(0, weighs(1)), endless(1, weighs(1)),
                             in_file_order(0, 5, Exhausted::kStop), endless(1, weighs(2))}),
          lengths)
          .value();
  const Ids steps = ids_of(*mixture, 2);
  EXPECT_EQ(steps, (Ids{{"3:0:0:0", "1:0:0:0", "3:1:0:0"}, {"3:2:0:0", "1:1:0:0", "3:3:0:0"}}));
}

TEST(Mixture, WhereOnlyWeightZeroIsLeftDrawingFails) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(samples_config(3, {in_file_order(4, 1, Exhausted::kDrop),
                                                          in_file_order(4, 0, Exhausted::kDrop)}),
                                       lengths)
                           .value();
  EXPECT_TRUE(mixture->next_step().is_ok());
  const auto step = mixture->next_step();
  EXPECT_TRUE(step.is(ErrorKind::kExhausted));
  EXPECT_NE(step.status().message().find("source 1 has, and weighs 0"), std::string::npos)
      << step.status().message();
}

std::string refusal(const MixtureConfig& config) {
  FakeLengths lengths = all_of_length(10);
  const auto mixture = Mixture::create(config, lengths);
  return mixture.is(ErrorKind::kInvalid) ? std::string(mixture.status().message()) : "";
}

TEST(Mixture, RefusesWhatCannotRun) {
  EXPECT_NE(refusal(samples_config(3, {})).find("a mixture of 0 sources"), std::string::npos);
  EXPECT_NE(refusal(samples_config(0, {endless(1, weighs(1))})).find("a step of 0"),
            std::string::npos);
  EXPECT_NE(refusal(tokens_config(9, 10, {endless(1, weighs(1))}))
                .find("a step takes 9 tokens, a sample up to 10"),
            std::string::npos);
  EXPECT_NE(refusal(tokens_config(9, 0, {endless(1, weighs(1))})).find("max_sample_tokens is 0"),
            std::string::npos);
  EXPECT_NE(refusal(samples_config(1, {in_file_order(0, 1, Exhausted::kError)}))
                .find("source 0 has no records"),
            std::string::npos);
  MixtureSource source = in_file_order(1, 1, Exhausted::kDrop);
  source.epochs = 2;
  EXPECT_NE(refusal(samples_config(1, {source})).find("to make 2 passes, and not to repeat"),
            std::string::npos);
}

TEST(Mixture, RefusesStepsInWhichNothingWeighs) {
  const auto until = [](std::uint64_t step) {
    return Schedule::create(
               {{model::Step(0), Weight(1)}, {model::Step(step), Weight(0), Ramp::kLinear}})
        .value();
  };
  EXPECT_NE(refusal(samples_config(1, {endless(1, weighs(0)), endless(0, weighs(1))}))
                .find("in step 0 no source that has records weighs anything"),
            std::string::npos);
  EXPECT_NE(
      refusal(samples_config(1, {endless(1, until(9)), endless(1, until(12))})).find("in step 12 "),
      std::string::npos);
  const Schedule gap = Schedule::create({{model::Step(0), Weight(1)},
                                         {model::Step(5), Weight(0)},
                                         {model::Step(6), Weight(1), Ramp::kCosine}})
                           .value();
  EXPECT_NE(refusal(samples_config(1, {endless(1, gap)})).find("in step 5 "), std::string::npos);
  EXPECT_EQ(refusal(samples_config(1, {endless(1, gap), endless(1, until(6))})), "");
}

}  // namespace
}  // namespace batchloom::planning
