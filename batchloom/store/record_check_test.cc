// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace batchloom::store {
namespace {

using model::PlanSample;
using testing::HasSubstr;
using testing::Optional;

/// 100 tokens of record `index`, from `position` on.
struct Drawn {
  std::uint64_t index = 0;
  std::uint32_t part = 0;
  std::uint64_t position = 0;
  std::uint32_t source = 0;
  std::uint32_t epoch = 0;
};

/// Gives entries to a RecordCheck, one step each.
class RecordCheckTest : public testing::Test {
 protected:
  std::optional<std::string> add(const std::vector<Drawn>& samples, const Entry& entry = {}) {
    return add_pack({samples}, entry);
  }
  std::optional<std::string> add_pack(const std::vector<std::vector<Drawn>>& steps,
                                      const Entry& entry) {
    BatchIndex index;
    index.origin.sources = sources_;
    for (const std::vector<Drawn>& samples : steps) {
      model::StepPlan& plan = index.steps.emplace_back().plan;
      for (const Drawn& drawn : samples) {
        plan.samples.push_back(
            {.id = {model::SourceId(drawn.source), model::Epoch(drawn.epoch),
                    model::RecordIndex(drawn.index), model::PartIndex(drawn.part)},
             .tokens = 100,
             .first_position = drawn.position});
      }
    }
    return check_.add(entry, index);
  }
  static Entry by(const std::string& producer, std::uint64_t term, std::uint64_t seq) {
    Entry entry;
    entry.producer = producer;
    entry.term = Term(term);
    entry.seq = Seq(seq);
    return entry;
  }
  /// The entry of batch `seq` of "a", which begins at `step`.
  static Entry at(std::uint64_t step, std::uint64_t seq) {
    Entry entry = by("a", 2, seq);
    entry.first_step = Step(step);
    return entry;
  }

  std::vector<BatchOrigin::Source> sources_ = {{"web", 1}, {"code", 2}};
  RecordCheck check_{true};
};

TEST_F(RecordCheckTest, TakesRecordsInAnyOrderOnce) {
  EXPECT_EQ(add({{9}, {0}, {.index = 5'000'000'000}}), std::nullopt);
  EXPECT_EQ(add({{1}, {8}}), std::nullopt);
  EXPECT_EQ(check_.samples(), 5U);
  EXPECT_EQ(check_.tokens(), 500U);
  EXPECT_THAT(add({{2}, {8}, {9}}), Optional(HasSubstr("sample 0:0:8:0 was drawn before")));
  EXPECT_THAT(add({{.index = 5'000'000'000}}), Optional(HasSubstr("was drawn before")));
}

TEST_F(RecordCheckTest, TellsSourcesAndEpochsApart) {
  EXPECT_EQ(add({{.index = 3}, {.index = 3, .source = 1}, {.index = 3, .epoch = 1}}), std::nullopt);
  EXPECT_THAT(add({{.index = 3, .source = 1}}), Optional(HasSubstr("1:0:3:0 was drawn before")));
}

TEST_F(RecordCheckTest, KnowsASourceByNameAndDigest) {
  EXPECT_EQ(add({{.index = 3, .source = 1}}), std::nullopt);
  sources_ = {{"code", 2}};
  EXPECT_THAT(add({{.index = 3, .source = 0}}), Optional(HasSubstr("was drawn before")));
  sources_ = {{"code", 4}};
  EXPECT_EQ(add({{.index = 3, .source = 0}}), std::nullopt) << "its files are others";
}

TEST_F(RecordCheckTest, PartsFollowEachOtherAmongOtherSources) {
  EXPECT_EQ(add({{.index = 3, .part = 0, .position = 50},
                 {.index = 8, .source = 1},
                 {.index = 3, .part = 1, .position = 150}}),
            std::nullopt);
  EXPECT_EQ(add({{.index = 3, .part = 2, .position = 250}, {.index = 4}}), std::nullopt);
}

TEST_F(RecordCheckTest, RefusesAPartOutOfPlace) {
  EXPECT_THAT(add({{.index = 3}, {.index = 3, .part = 2, .position = 100}}),
              Optional(HasSubstr("0:0:3:2 does not follow the part before it")));
  EXPECT_THAT(add({{.index = 6}, {.index = 6, .part = 1, .position = 99}}),
              Optional(HasSubstr("begins at position 99, but the part before it ends at 100")));
  EXPECT_THAT(add({{.index = 7, .part = 1}}), Optional(HasSubstr("is no first part")));
}

TEST_F(RecordCheckTest, AnyRecordOfAStepMayGoOnInTheNextButOnlyOne) {
  EXPECT_EQ(add({{.index = 3}, {.index = 4}, {.index = 5}}), std::nullopt);
  EXPECT_EQ(add({{.index = 2, .source = 1}}), std::nullopt) << "a step without any of the source";
  EXPECT_EQ(add({{.index = 1}, {.index = 4, .part = 1, .position = 100}, {.index = 7}}),
            std::nullopt);
  EXPECT_THAT(add({{.index = 5, .part = 1, .position = 100}}),
              Optional(HasSubstr("0:0:5:1 does not follow the part before it")));
  EXPECT_EQ(add({{.index = 8}, {.index = 9}}), std::nullopt);
  EXPECT_THAT(add({{.index = 8, .part = 1, .position = 100},
                   {.index = 8, .part = 2, .position = 200},
                   {.index = 9, .part = 1, .position = 100}}),
              Optional(HasSubstr("0:0:9:1 does not follow the part before it")));
}

TEST_F(RecordCheckTest, APartTwiceIsNoNewPart) {
  EXPECT_EQ(add({{.index = 3}, {.index = 3, .part = 1, .position = 100}}), std::nullopt);
  EXPECT_THAT(add({{.index = 3, .part = 1, .position = 100}}),
              Optional(HasSubstr("does not follow the part before it")));
}

TEST_F(RecordCheckTest, ProducersDrawForThemselves) {
  EXPECT_EQ(add({{3}}, by("a", 2, 0)), std::nullopt);
  EXPECT_EQ(add({{3}}, by("b", 3, 0)), std::nullopt);
  EXPECT_THAT(add({{3}}, by("a", 4, 1)), Optional(HasSubstr("was drawn before")))
      << "the next session goes on where the one before it stopped";
}

TEST_F(RecordCheckTest, AProducerThatBeginsAnewDrawsAnew) {
  EXPECT_EQ(add({{3}}, by("a", 2, 0)), std::nullopt);
  EXPECT_EQ(add({{3}}, by("a", 5, 0)), std::nullopt);
  EXPECT_THAT(add({{3}}, by("a", 5, 1)), Optional(HasSubstr("was drawn before")));
}

TEST_F(RecordCheckTest, WhatCameBeforeIsUnknownAfterATrim) {
  check_ = RecordCheck(false);
  EXPECT_EQ(add({{.index = 3, .part = 2, .position = 900}}, by("a", 2, 7)), std::nullopt);
  EXPECT_EQ(add({{.index = 4, .part = 1, .source = 1}}, by("a", 2, 8)), std::nullopt);
  EXPECT_THAT(add({{.index = 5, .part = 1}}, by("a", 2, 9)), Optional(HasSubstr("no first part")))
      << "once";
  EXPECT_THAT(add({{.index = 3}}, by("a", 2, 9)), Optional(HasSubstr("was drawn before")));
}

TEST_F(RecordCheckTest, WhereMembershipChangesRecordsAreDrawnAnew) {
  check_ = RecordCheck(true, {Step(0), Step(10)});
  EXPECT_EQ(add({{3}, {4}}, at(0, 0)), std::nullopt);
  EXPECT_THAT(add({{3}}, at(9, 1)), Optional(HasSubstr("was drawn before")));
  EXPECT_EQ(add({{3}, {5}}, at(10, 2)), std::nullopt);
  EXPECT_THAT(add({{3}}, at(11, 3)), Optional(HasSubstr("was drawn before"))) << "once";
  EXPECT_EQ(check_.samples(), 6U) << "all are counted";
}

TEST_F(RecordCheckTest, WhereMembershipChangesARecordMayGoOn) {
  check_ = RecordCheck(true, {Step(10)});
  EXPECT_EQ(add({{.index = 3}}, at(9, 0)), std::nullopt);
  EXPECT_EQ(add({{.index = 3, .part = 1, .position = 100}}, at(10, 1)), std::nullopt);
  EXPECT_THAT(add({{.index = 5, .part = 1}}, at(11, 2)), Optional(HasSubstr("no first part")));
}

TEST_F(RecordCheckTest, MembershipMayChangeWithinAPack) {
  check_ = RecordCheck(true, {Step(1)});
  EXPECT_EQ(add_pack({{{3}}, {{.index = 3, .part = 1, .position = 100}}, {{4}}}, at(0, 0)),
            std::nullopt);
  EXPECT_THAT(add({{3}}, at(3, 1)), Optional(HasSubstr("was drawn before")));
}

TEST_F(RecordCheckTest, AChangeThatWasSkippedIsFound) {
  check_ = RecordCheck(true, {Step(5), Step(10)});
  EXPECT_EQ(add({{3}}, at(0, 0)), std::nullopt);
  check_.skip();
  EXPECT_EQ(add({{3}}, at(20, 7)), std::nullopt);
}

TEST_F(RecordCheckTest, AStreamThatBeginsUnderItsKeysBeginsWithFirstParts) {
  check_ = RecordCheck(true, {Step(0)});
  EXPECT_THAT(add({{.index = 3, .part = 1}}, at(0, 1)), Optional(HasSubstr("no first part")));
}

TEST_F(RecordCheckTest, WhatCouldNotBeReadIsUnknown) {
  EXPECT_EQ(add({{3}}, by("a", 2, 0)), std::nullopt);
  check_.skip();
  EXPECT_EQ(add({{.index = 5, .part = 3, .position = 7}}, by("a", 2, 2)), std::nullopt);
  EXPECT_EQ(add({{.index = 9, .part = 1, .source = 1}}, by("a", 2, 3)), std::nullopt);
  EXPECT_EQ(add({{.index = 1, .part = 1}}, by("b", 3, 4)), std::nullopt) << "may have begun there";
  EXPECT_THAT(add({{3}}, by("a", 2, 4)), Optional(HasSubstr("was drawn before")));
}

}  // namespace
}  // namespace batchloom::store
