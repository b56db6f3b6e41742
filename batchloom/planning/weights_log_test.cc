// SPDX-License-Identifier: Apache-2.0
// Live updates of weights, in the log and as Mixture::set_weights() takes them.
#include "batchloom/planning/weights_log.h"

#include <gtest/gtest.h>

#include <string>

#include "batchloom/planning/mixture.h"
#include "batchloom/planning/mixture_testing.h"

namespace batchloom::planning {
namespace {

SourceWeight now_weighs(std::uint32_t source, std::uint64_t weight) {
  return {model::SourceId(source), Weight(weight)};
}

MixtureConfig three_sources() {
  return {.seed = 1,
          .unit = StepUnit::kSamples,
          .units_per_step = 10,
          .max_sample_tokens = 8,
          .sources = {endless(10, weighs(5)), endless(10, weighs(5)), endless(10, weighs(0))}};
}

class LiveWeights : public testing::Test {
 protected:
  LiveWeights() : lengths_(uneven_lengths(8)) {
    mixture_ = Mixture::create(three_sources(), lengths_).value();
  }

  /// Draws of each source in the next step.
  std::vector<int> counts() {
    std::vector<int> out(3);
    const MixtureStep step = *mixture_->next_step().value();
    for (const Part& part : step.parts) ++out[part.id.source.value];
    return out;
  }
  Status set(std::uint64_t from_step, std::vector<SourceWeight> weights) {
    return mixture_->set_weights(model::Step(from_step), weights);
  }

  FakeLengths lengths_;
  std::unique_ptr<Mixture> mixture_;
};

TEST_F(LiveWeights, HoldFromTheirStepOnForTheSourcesTheyName) {
  ASSERT_TRUE(set(2, {now_weighs(2, 10)}).is_ok());
  ASSERT_TRUE(set(1, {now_weighs(1, 0)}).is_ok());
  ASSERT_TRUE(set(3, {now_weighs(1, 5), now_weighs(0, 0)}).is_ok());
  EXPECT_EQ(mixture_->state().version, WeightsVersion(3));
  EXPECT_EQ(mixture_->state().log.size(), 3U);
  EXPECT_EQ(counts(), (std::vector{5, 5, 0}));
  EXPECT_EQ(counts(), (std::vector{10, 0, 0}));
  EXPECT_EQ(counts(), (std::vector{3, 0, 7}));
  EXPECT_EQ(counts(), (std::vector{0, 3, 7}));
  EXPECT_EQ(mixture_->state().log.size(), 0U) << "all are in force";
  EXPECT_EQ(mixture_->state().version, WeightsVersion(3));
}

TEST_F(LiveWeights, TheLaterOfTwoForOneStepHolds) {
  ASSERT_TRUE(set(1, {now_weighs(0, 0)}).is_ok());
  ASSERT_TRUE(set(1, {now_weighs(0, 5), now_weighs(1, 0)}).is_ok());
  counts();
  EXPECT_EQ(counts(), (std::vector{10, 0, 0}));
}

TEST_F(LiveWeights, RefuseAStepThatHasBegun) {
  counts();
  const Status late = set(0, {now_weighs(0, 1)});
  EXPECT_TRUE(late.is(ErrorKind::kInvalid));
  EXPECT_NE(late.message().find("from step 0 on: parts of it are drawn already; step 1 is the"),
            std::string::npos)
      << late.message();
  EXPECT_TRUE(set(1, {now_weighs(0, 1)}).is_ok());
  ASSERT_TRUE(mixture_->draw().is_ok());
  EXPECT_TRUE(set(1, {now_weighs(0, 1)}).is(ErrorKind::kInvalid));
  EXPECT_TRUE(set(2, {now_weighs(0, 1)}).is_ok());
}

TEST_F(LiveWeights, RefuseWhatCannotHoldAndStayAsTheyWere) {
  const MixtureState before = mixture_->state();
  const auto refused = [&](std::vector<SourceWeight> weights, std::string_view why) {
    const Status status = set(4, std::move(weights));
    EXPECT_TRUE(status.is(ErrorKind::kInvalid));
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
    EXPECT_EQ(mixture_->state(), before);
  };
  refused({}, "of no source");
  refused({now_weighs(3, 1)}, "a new weight of source 3, of 3 sources");
  refused({now_weighs(1, 1), now_weighs(0, 1), now_weighs(1, 2)}, "two new weights of source 1");
  refused({now_weighs(1, kMaxWeight.value + 1)}, "of source 1; it is at most");
  refused({now_weighs(0, 0), now_weighs(1, 0)}, "in step 4 no source");
}

TEST_F(LiveWeights, RefuseWhatWouldWeighNothingWithAnotherUpdate) {
  ASSERT_TRUE(set(7, {now_weighs(1, 0)}).is_ok());
  const Status status = set(5, {now_weighs(0, 0)});
  EXPECT_NE(status.message().find("in step 7 no source"), std::string::npos) << status.message();
  EXPECT_TRUE(set(5, {now_weighs(0, 0), now_weighs(2, 1)}).is_ok());
}

TEST_F(LiveWeights, AreBounded) {
  for (std::size_t i = 0; i < kMaxLogEntries; ++i) {
    ASSERT_TRUE(set(1'000 - i, {now_weighs(0, 1 + i)}).is_ok());
  }
  const Status status = set(1, {now_weighs(0, 1)});
  EXPECT_TRUE(status.is(ErrorKind::kExhausted));
  EXPECT_NE(status.message().find("64 changes of weights wait"), std::string::npos)
      << status.message();
}

/// Which samples a step has depends on the updates up to it, not on when they were asked for.
TEST_F(LiveWeights, DoNotChangeWhatComesBeforeThem) {
  FakeLengths lengths = uneven_lengths(8);
  const auto later = Mixture::create(three_sources(), lengths).value();
  ASSERT_TRUE(set(40, {now_weighs(2, 7)}).is_ok());
  const std::vector update = {now_weighs(2, 7)};
  for (int step = 0; step < 80; ++step) {
    if (step == 40) {
      ASSERT_TRUE(later->set_weights(model::Step(40), update).is_ok());
    }
    EXPECT_EQ(*mixture_->next_step().value(), *later->next_step().value()) << step;
  }
}

}  // namespace
}  // namespace batchloom::planning
