// SPDX-License-Identifier: Apache-2.0
// What pins and live cursors promise: kept, and broken in each way that the rules find.
#include "batchloom/simulator/pin_rules.h"

#include <gtest/gtest.h>

#include "batchloom/simulator/handmade_stream_testing.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/pin_codec.h"

namespace batchloom::simulator {
namespace {

using store::Pin;
using store::Step;

/// A stream of steps 0 to 3.
class PinRulesTest : public testing::Test {
 protected:
  PinRulesTest() {
    stream_.commit(stream_.fence("a"));
    for (int i = 0; i < 4; ++i) stream_.commit(stream_.batch("a"));
  }
  void trim(std::uint64_t step) {
    stream_.commit(stream_.intent(step));
    stream_.commit(stream_.trim(step));
  }
  /// Whatever the group did.
  void put_cursor(std::uint64_t keep_from, std::uint64_t cursor, std::uint64_t counter,
                  bool closed = false) {
    stream_.put_cursor({.group = "g",
                        .keep_from = Step(keep_from),
                        .cursor = Step(cursor),
                        .counter = counter,
                        .closed = closed});
  }
  void open_cursor(std::uint64_t step, std::uint64_t counter) {
    stream_.history().cursor_opening("g", Step(step));
    put_cursor(step, step, counter);
  }
  std::optional<Step> lowest_kept(std::uint64_t first_step = 0) const {
    return stream_.history().pins().lowest_kept(Step(first_step));
  }

  HandmadeStream stream_;
};

TEST_F(PinRulesTest, PromisesAreKept) {
  const Pin pin = stream_.pin(2);
  stream_.history().pin_told(pin);
  stream_.put_cursor(1, 0);
  stream_.history().cursor_told("g", Step(1));
  trim(1);
  stream_.put_cursor(2, 1);
  trim(2);
  stream_.remove(store::pin_key(pin.name));
  stream_.put_cursor(2, 2, true);
  trim(4);
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(stream_.history().pins().pins(), 0U);
  EXPECT_EQ(stream_.history().pins().reports(), 1U);
}

TEST_F(PinRulesTest, WhatNobodyWasToldIsNoPromise) {
  stream_.pin(1);
  stream_.put_cursor(1, 0);
  trim(3);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(PinRulesTest, ALatePutBringsAPinBackWithoutItsPromise) {
  const Pin pin = stream_.pin(1);
  stream_.history().pin_told(pin);
  const std::string key = store::pin_key(pin.name);
  stream_.remove(key);
  stream_.put(key, store::encode_pin(stream_.uuid(), pin));
  EXPECT_EQ(lowest_kept(), Step(1));
  trim(3);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(PinRulesTest, ACursorThatIsOpenedAnewPromisesNothingUntilItIsTold) {
  stream_.put_cursor(2, 0);
  stream_.history().cursor_told("g", Step(2));
  open_cursor(1, 1);
  trim(3);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(PinRulesTest, LowestKeptIsOfPinsAndOpenCursorsThatCount) {
  EXPECT_EQ(lowest_kept(), std::nullopt);
  const Pin pin = stream_.pin(3);
  stream_.pin(1);
  EXPECT_EQ(lowest_kept(), Step(1));
  EXPECT_EQ(lowest_kept(2), Step(3));
  stream_.put_cursor(2, 0);
  EXPECT_EQ(lowest_kept(2), Step(2));
  stream_.put_cursor(2, 1, true);
  EXPECT_EQ(lowest_kept(2), Step(3));
  stream_.remove(store::pin_key(pin.name));
  EXPECT_EQ(lowest_kept(2), std::nullopt);
  EXPECT_EQ(stream_.history().pins().pins(), 1U);
}

TEST_F(PinRulesTest, I12APinKeepsItsStep) {
  stream_.history().pin_told(stream_.pin(2));
  trim(3);
  EXPECT_TRUE(stream_.breaks_only("I12", "keeps step 2, but the stream begins at 3"));
}

TEST_F(PinRulesTest, I12APinIsNotAcknowledgedTooLate) {
  trim(3);
  stream_.history().pin_told(stream_.pin(2));
  EXPECT_TRUE(stream_.breaks_only("I12", "keeps step 2, but the stream begins at 3"));
}

TEST_F(PinRulesTest, I12APinIsNotAcknowledgedUnlessItWasPut) {
  Pin pin = stream_.pin(2);
  ++pin.step;
  stream_.history().pin_told(pin);
  EXPECT_TRUE(stream_.breaks_only("I12", "was acknowledged, but never put so"));
  HandmadeStream empty;
  empty.history().pin_told({.name = {.group = "g", .id = "c", .nonce = {}}, .step = Step(0)});
  EXPECT_TRUE(empty.breaks_only("I12", "was acknowledged, but never put so"));
}

TEST_F(PinRulesTest, I12APinIsNotOverwritten) {
  Pin pin = stream_.pin(2);
  stream_.put(store::pin_key(pin.name), store::encode_pin(stream_.uuid(), pin));
  EXPECT_TRUE(stream_.breaks_only("I12", " was overwritten"));
}

TEST_F(PinRulesTest, I12APinAndACursorCanBeRead) {
  const std::string key = store::pin_key({.group = "g", .id = "c", .nonce = stream_.next_nonce()});
  stream_.put(key, to_bytes("?"));
  EXPECT_TRUE(stream_.breaks_only("I12", "corruption: " + key));
  stream_.violations() = {};
  stream_.put(store::live_cursor_key("g"), to_bytes("?"));
  EXPECT_TRUE(stream_.breaks_only("I12", "corruption: pin/g/live"));
}

TEST_F(PinRulesTest, I12ACursorKeepsItsStep) {
  stream_.put_cursor(1, 0);
  stream_.history().cursor_told("g", Step(1));
  stream_.pin(2);
  stream_.put_cursor(2, 1);
  trim(2);
  EXPECT_TRUE(stream_.is_right());
  trim(3);
  EXPECT_TRUE(
      stream_.breaks_only("I12", "the live cursor of group g keeps step 2, but the stream"));
}

TEST_F(PinRulesTest, I12ACursorIsNotOpenedTooLate) {
  trim(3);
  stream_.put_cursor(2, 0);
  stream_.history().cursor_told("g", Step(2));
  EXPECT_TRUE(
      stream_.breaks_only("I12", "the live cursor of group g keeps step 2, but the stream"));
}

TEST_F(PinRulesTest, I12WhoOpensACursorIsToldWhatItKeeps) {
  stream_.history().cursor_told("g", Step(2));
  EXPECT_TRUE(stream_.breaks_only("I12", "told that its cursor keeps step 2, which it does not"));
  stream_.violations() = {};
  stream_.put_cursor(3, 0);
  stream_.history().cursor_told("g", Step(2));
  EXPECT_TRUE(stream_.breaks_only("I12", "told that its cursor keeps step 2, which it does not"));
  stream_.violations() = {};
  stream_.put_cursor(3, 1, true);
  stream_.history().cursor_told("g", Step(3));
  EXPECT_TRUE(stream_.breaks_only("I12", "told that its cursor keeps step 3, which it does not"));
}

TEST_F(PinRulesTest, I12ACursorsCounterGrows) {
  open_cursor(1, 3);
  open_cursor(1, 3);
  EXPECT_TRUE(stream_.breaks_only("I12", "counter went from 3 to 3"));
}

TEST_F(PinRulesTest, ACursorsValuesFollowFromWhatItsGroupDid) {
  open_cursor(1, 0);
  stream_.history().group_reached("g", Step(3));
  put_cursor(1, 2, 1);
  stream_.pin(2);
  put_cursor(2, 3, 2);
  put_cursor(2, 1, 3);  // It went back: nothing is lowered, and nobody was told so.
  open_cursor(1, 4);
  put_cursor(1, 1, 5, true);
  put_cursor(3, 3, 6);  // Somebody closed it, and it opened where it was.
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(PinRulesTest, I12ACursorIsNotAheadOfItsGroup) {
  open_cursor(1, 0);
  stream_.history().group_reached("g", Step(3));
  put_cursor(1, 4, 1);
  EXPECT_TRUE(stream_.breaks_only("I12", "its cursor says step 4, but it was handed only those"));
  stream_.violations() = {};
  HandmadeStream empty;
  empty.put_cursor({.group = "g", .keep_from = Step(1), .cursor = Step(1)});
  EXPECT_FALSE(empty.is_right()) << "nobody was about to open it";
}

TEST_F(PinRulesTest, I12KeepFromRisesOnlyToAPinThatTheGroupHasReached) {
  stream_.history().group_reached("g", Step(4));
  stream_.pin(3);
  const std::string of_no_pin = "which is neither where it was opened nor a pin of the group";
  const std::pair<std::uint64_t, std::uint64_t> wrong[] = {{2, 4}, {2, 2}, {3, 2}, {0, 2}};
  std::uint64_t counter = 0;
  for (const auto& [keep_from, cursor] : wrong) {
    open_cursor(1, counter++);
    EXPECT_TRUE(stream_.is_right());
    put_cursor(keep_from, cursor, counter++);
    EXPECT_TRUE(stream_.breaks_only("I12", of_no_pin)) << keep_from << " at " << cursor;
    stream_.violations() = {};
  }
  open_cursor(1, counter++);
  put_cursor(3, 3, counter++);
  EXPECT_TRUE(stream_.is_right());
  put_cursor(3, 3, counter++, true);
  put_cursor(3, 4, counter++);
  EXPECT_TRUE(stream_.breaks_only("I12", of_no_pin)) << "opened again, but not where it is";
}

TEST_F(PinRulesTest, I12AnotherGroupsPinRaisesNothing) {
  open_cursor(1, 0);
  stream_.pin(2);
  stream_.history().cursor_opening("f", Step(1));
  stream_.history().group_reached("f", Step(3));
  stream_.put_cursor({.group = "f", .keep_from = Step(1), .cursor = Step(1)});
  stream_.put_cursor({.group = "f", .keep_from = Step(2), .cursor = Step(3), .counter = 1});
  EXPECT_TRUE(stream_.breaks_only("I12", "group f: its cursor, at step 3, keeps steps from 2 on"));
}

TEST_F(PinRulesTest, I12ACursorIsNotDeleted) {
  stream_.put_cursor(1, 0);
  stream_.remove(store::live_cursor_key("g"));
  EXPECT_TRUE(stream_.breaks_only("I12", "the live cursor of group g was deleted"));
}

}  // namespace
}  // namespace batchloom::simulator
