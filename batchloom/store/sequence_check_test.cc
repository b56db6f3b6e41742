// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/sequence_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchloom::store {
namespace {

using testing::HasSubstr;
using testing::Optional;

Entry entry_of(const std::string& producer, std::uint64_t term, std::uint64_t seq) {
  Entry entry;
  entry.producer = producer;
  entry.term = Term(term);
  entry.seq = Seq(seq);
  return entry;
}

ProducerRow row_of(const std::string& producer, std::uint64_t term, std::uint64_t next_seq) {
  ProducerRow row;
  row.producer = producer;
  row.term = Term(term);
  row.next_seq = Seq(next_seq);
  return row;
}

TEST(SequenceCheck, AcceptsProducersThatTakeTurns) {
  SequenceCheck check(true);
  for (const Entry& e : {entry_of("a", 2, 0), entry_of("b", 3, 0), entry_of("a", 2, 1),
                         entry_of("b", 3, 1), entry_of("a", 5, 2)}) {
    EXPECT_EQ(check.add(e), std::nullopt);
  }
  EXPECT_EQ(check.check_row(row_of("a", 5, 3)), std::nullopt);
  EXPECT_EQ(check.check_row(row_of("a", 6, 3)), std::nullopt);
  EXPECT_EQ(check.check_row(row_of("new", 7, 0)), std::nullopt);
}

TEST(SequenceCheck, LetsANewTermBeginAgain) {
  SequenceCheck check(true);
  EXPECT_EQ(check.add(entry_of("a", 2, 0)), std::nullopt);
  EXPECT_EQ(check.add(entry_of("a", 2, 1)), std::nullopt);
  EXPECT_EQ(check.check_row(row_of("a", 4, 0)), std::nullopt);
  EXPECT_EQ(check.add(entry_of("a", 4, 0)), std::nullopt);
  EXPECT_EQ(check.check_row(row_of("a", 4, 1)), std::nullopt);
}

TEST(SequenceCheck, NoticesLossRepetitionAndOldTerms) {
  SequenceCheck check(true);
  EXPECT_EQ(check.add(entry_of("a", 3, 0)), std::nullopt);
  EXPECT_THAT(check.add(entry_of("a", 3, 2)), Optional(HasSubstr("expected batch 1: one is lost")));
  EXPECT_THAT(check.add(entry_of("a", 3, 2)), Optional(HasSubstr("committed again")));
  EXPECT_THAT(check.add(entry_of("a", 3, 0)), Optional(HasSubstr("expected batch 3")));
  EXPECT_THAT(check.add(entry_of("a", 2, 1)), Optional(HasSubstr("a fenced session went on")));
  EXPECT_EQ(check.add(entry_of("a", 4, 1)), std::nullopt) << "the fenced one left no trace";
  EXPECT_THAT(check.add(entry_of("a", 5, 1)), Optional(HasSubstr("expected batch 2")));
}

TEST(SequenceCheck, WantsTheFirstBatchAtTheStart) {
  EXPECT_THAT(SequenceCheck(true).add(entry_of("a", 3, 4)),
              Optional(HasSubstr("expected batch 0")));
  EXPECT_EQ(SequenceCheck(false).add(entry_of("a", 3, 4)), std::nullopt);
  EXPECT_THAT(SequenceCheck(true).check_row(row_of("a", 3, 4)), Optional(HasSubstr("has none")));
  EXPECT_EQ(SequenceCheck(false).check_row(row_of("a", 3, 4)), std::nullopt);
}

TEST(SequenceCheck, NoticesARowThatDisagrees) {
  SequenceCheck check(true);
  EXPECT_EQ(check.add(entry_of("a", 3, 0)), std::nullopt);
  EXPECT_THAT(check.check_row(row_of("a", 3, 2)), Optional(HasSubstr("ends with batch 0")));
  EXPECT_THAT(check.check_row(row_of("a", 3, 0)), Optional(HasSubstr("batch 0 of a is next")));
  EXPECT_THAT(check.check_row(row_of("a", 2, 1)), Optional(HasSubstr("committed in term 3")));
}

TEST(SequenceCheck, KnowsNothingAfterAGap) {
  SequenceCheck check(true);
  EXPECT_EQ(check.add(entry_of("a", 3, 0)), std::nullopt);
  check.skip();
  EXPECT_EQ(check.add(entry_of("a", 3, 7)), std::nullopt);
  EXPECT_THAT(check.add(entry_of("a", 3, 9)), Optional(HasSubstr("expected batch 8")));
  EXPECT_EQ(check.check_row(row_of("b", 3, 7)), std::nullopt);
}

}  // namespace
}  // namespace batchloom::store
