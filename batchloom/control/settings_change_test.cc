// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/settings_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using model::SourceId;
using planning::SourceState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kThirdSource = R"(
[[source]]
name = "aside"
files = ["data/odd.name"]
format = "jsonl"
weight = 0.2
)";

/// Of the sources docs (0) and code (1), at step 7; docs owes what code is owed.
PipelineState state_of_plain() {
  PipelineState state;
  state.struck = {{SourceId(0), model::RecordIndex(4)}, {SourceId(1), model::RecordIndex(2)}};
  planning::MixtureState& mixture = state.planner.mixture;
  mixture.max_sample_tokens = 16'384;
  mixture.step = model::Step(7);
  mixture.version = planning::WeightsVersion(1);
  mixture.sources = {
      {.epoch = model::Epoch(1),
       .place = 5,
       .part = model::PartIndex(1),
       .credit = -300,
       .set_weight = planning::Weight(9)},
      {.epoch = {}, .place = 8, .part = {}, .credit = 300, .set_weight = {}, .gone = true}};
  return state;
}

PipelineState fresh_state(std::size_t sources) {
  PipelineState state;
  state.membership = {.high = 2, .low = 1};
  state.planner.mixture.max_sample_tokens = 16'384;
  state.planner.mixture.sources.resize(sources);
  return state;
}

/// The state after the plain pipeline became `text`, which has so many sources.
PipelineState changed_to(std::string_view text, PipelineState fresh = fresh_state(2),
                         const PipelineState& state = state_of_plain()) {
  const Membership before = membership_of_plain(plain_pipeline_text());
  const Membership after = membership_of_plain(text);
  return state_after_change({before, state}, {after, fresh}).value();
}

PipelineState changed(std::string_view stretch, std::string_view instead) {
  return changed_to(text_with(plain_pipeline_text(), stretch, instead));
}

bool begins_anew(const SourceState& row) {
  SourceState anew;
  anew.credit = row.credit;
  return row == anew;
}

TEST(SettingsChange, OtherWeightsChangeNothingElse) {
  const PipelineState state = changed("weight = 0.5", "weight = 0.25");
  PipelineState expected = state_of_plain();
  expected.membership = fresh_state(2).membership;
  expected.planner.mixture.version = {};
  expected.planner.mixture.sources[0].set_weight.reset();
  EXPECT_EQ(state, expected) << "what was set while it ran is not what the settings say";
}

TEST(SettingsChange, ASourceOfOtherRecordsBeginsAnewAndTheOthersGoOn) {
  for (const auto& [stretch, instead] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"data/docs-*.jsonl", "data/docs-1*.jsonl"},
           {"{ text = \"body\" }", "{ text = \"head\" }"},
           {"train = 999", "train = 9"}}) {
    const PipelineState state = changed(stretch, instead);
    const auto& sources = state.planner.mixture.sources;
    EXPECT_TRUE(begins_anew(sources[0])) << instead;
    EXPECT_EQ(sources[1], state_of_plain().planner.mixture.sources[1]) << instead;
    EXPECT_EQ(sources[0].credit, -300) << "it is owed what it was";
    EXPECT_THAT(state.struck, ElementsAre(RecordName{SourceId(1), model::RecordIndex(2)}));
    EXPECT_EQ(state.planner.mixture.step, model::Step(7));
  }
}

TEST(SettingsChange, WhatDecidesAllRecordsLetsAllBeginAnew) {
  for (const auto& [stretch, instead] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"seed = 17", "seed = 18"},
           {"end = [257]", "end = [258]"},
           {"max_sample_tokens = 16_384", "max_sample_tokens = 16_384\nover_length = \"drop\""}}) {
    const PipelineState state = changed(stretch, instead);
    EXPECT_TRUE(std::ranges::all_of(state.planner.mixture.sources, begins_anew)) << instead;
    EXPECT_THAT(state.struck, IsEmpty()) << instead;
  }
}

TEST(SettingsChange, AnotherSizeOfStepsGoesOn) {
  const PipelineState state = changed("tokens = 524_288", "tokens = 100_000");
  EXPECT_EQ(state.planner.mixture.sources[0].place, 5U);
  EXPECT_EQ(state.planner.mixture.sources[1].credit, 300);
}

TEST(SettingsChange, QuotasThatAreCountedOtherwiseBeginAnew) {
  PipelineState fresh = fresh_state(2);
  fresh.planner.mixture.unit = planning::StepUnit::kSamples;
  const PipelineState state =
      changed_to(text_with(plain_pipeline_text(), "tokens = 524_288", "samples = 32"), fresh);
  EXPECT_EQ(state.planner.mixture.sources[0].place, 5U);
  EXPECT_EQ(state.planner.mixture.sources[0].credit, 0);
  EXPECT_EQ(state.planner.mixture.sources[1].credit, 0);
  EXPECT_EQ(state.planner.mixture.unit, planning::StepUnit::kSamples);
}

TEST(SettingsChange, SourcesAreKnownByName) {
  std::string text(plain_pipeline_text());
  text.insert(text.find("\n[[source]]"), kThirdSource);
  const PipelineState state = changed_to(text, fresh_state(3));
  const auto& sources = state.planner.mixture.sources;
  EXPECT_EQ(sources[0], SourceState()) << "it is new";
  EXPECT_EQ(sources[1].place, 5U);
  EXPECT_EQ(sources[1].credit, -300);
  EXPECT_EQ(sources[2], state_of_plain().planner.mixture.sources[1]);
  EXPECT_THAT(state.struck, ElementsAre(RecordName{SourceId(1), model::RecordIndex(4)},
                                        RecordName{SourceId(2), model::RecordIndex(2)}));
}

TEST(SettingsChange, WithoutASourceQuotasBeginAnew) {
  const std::string text(plain_pipeline_text());
  const std::string without =
      text.substr(0, text.find("\n[[source]]")) + text.substr(text.rfind("\n[[source]]"));
  const PipelineState state = changed_to(without, fresh_state(1));
  EXPECT_EQ(state.planner.mixture.sources[0].place, 8U);
  EXPECT_EQ(state.planner.mixture.sources[0].credit, 0);
  EXPECT_THAT(state.struck, ElementsAre(RecordName{SourceId(0), model::RecordIndex(2)}));
}

TEST(SettingsChange, WhatEndedIsLookedAtAgain) {
  const PipelineState state = changed("exhausted = \"repeat\"\nepochs = 3", "exhausted = \"drop\"");
  EXPECT_FALSE(state.planner.mixture.sources[1].gone);
  EXPECT_EQ(state.planner.mixture.sources[1].place, 8U);

  PipelineState ended = state_of_plain();
  ended.planner.mixture.ended = true;
  ended.planner.mixture.step_units = 12;
  const PipelineState after = changed_to(
      text_with(plain_pipeline_text(), "weight = 0.5", "weight = 1"), fresh_state(2), ended);
  EXPECT_FALSE(after.planner.mixture.ended);
  EXPECT_EQ(after.planner.mixture.step, model::Step(8)) << "the short last step is complete";
  EXPECT_EQ(after.planner.mixture.step_units, 0U);
}

TEST(SettingsChange, AStateOfOtherSourcesIsCorruption) {
  const Membership settings = membership_of_plain(plain_pipeline_text());
  const PipelineState fresh = fresh_state(2);
  const PipelineState state = fresh_state(3);
  const auto refused = state_after_change({settings, state}, {settings, fresh});
  EXPECT_TRUE(refused.is(ErrorKind::kCorruption));
  EXPECT_THAT(refused.status().to_string(), HasSubstr("have 2 sources, and the state has 3"));
  EXPECT_TRUE(
      state_after_change({Membership(), state}, {settings, fresh}).is(ErrorKind::kCorruption));
}

}  // namespace
}  // namespace batchloom::control
