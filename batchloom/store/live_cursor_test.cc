// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/live_cursor.h"

#include <gmock/gmock.h>

#include "batchloom/store/pin_codec.h"
#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using objstore::PutCondition;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kCursorKey = "pin/g/live";

class LiveCursors : public TrimTest {
 protected:
  Result<LiveCursor> open(Step step, const CallOptions& call = {}) {
    return open_live_cursor(*stream_, "g", step, call);
  }
  Result<LiveCursor> report(Step step, const CallOptions& call = {}) {
    return report_live_cursor(*stream_, "g", step, call);
  }
  Status close(const CallOptions& call = {}) { return close_live_cursor(*stream_, "g", call); }
  LiveCursor now() { return read_live_cursor(*other_, "g", {}).value().value(); }
  void next_put(Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = std::string(kCursorKey),
                   .answer = answer,
                   .before = std::move(before)});
  }
  /// The numbers: keep_from, cursor, counter, closed.
  static LiveCursor cursor(std::uint64_t keep_from, std::uint64_t cursor, std::uint64_t counter,
                           bool closed = false) {
    return {.group = "g",
            .keep_from = Step(keep_from),
            .cursor = Step(cursor),
            .counter = counter,
            .closed = closed};
  }
};

TEST_F(LiveCursors, OpenReportClose) {
  grow(10);
  EXPECT_EQ(read_live_cursor(*stream_, "g", {}).value(), std::nullopt);
  EXPECT_EQ(open(Step(3)).value(), cursor(3, 3, 0));
  EXPECT_EQ(now(), cursor(3, 3, 0));
  EXPECT_EQ(report(Step(5)).value(), cursor(3, 5, 1));
  EXPECT_EQ(now(), cursor(3, 5, 1));
  EXPECT_TRUE(close().is_ok());
  EXPECT_EQ(now(), cursor(3, 5, 2, true));
  EXPECT_TRUE(close().is_ok());
  EXPECT_EQ(now(), cursor(3, 5, 2, true)) << "nothing to do the second time";
  EXPECT_EQ(open(Step(4)).value(), cursor(4, 4, 3));
}

TEST_F(LiveCursors, StopTrimmingUntilClosed) {
  grow(10);
  pin_step(*other_, {.group = "f", .id = "a", .step = Step(8)}, {}).value();
  ASSERT_TRUE(open(Step(3)).is_ok());
  ASSERT_TRUE(report(Step(6)).is_ok());
  EXPECT_EQ(run_trim().first_step, Step(3));
  ASSERT_TRUE(close().is_ok());
  EXPECT_EQ(run_trim().first_step, Step(8));
}

TEST_F(LiveCursors, AReportRaisesKeepFromToTheOldestPin) {
  grow(20);
  ASSERT_TRUE(open(Step(3)).is_ok());
  EXPECT_EQ(report(Step(5)).value().keep_from, Step(3)) << "no pin: where it opened";
  pin(Step(9), "b");
  pin(Step(6), "a");
  EXPECT_EQ(report(Step(12)).value().keep_from, Step(6));
  ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok());
  EXPECT_EQ(report(Step(13)).value().keep_from, Step(9));
  ASSERT_TRUE(unpin(*other_, "g", "b", {}).is_ok());
  EXPECT_EQ(report(Step(14)).value().keep_from, Step(9)) << "no pin: stays";
}

TEST_F(LiveCursors, AReportNeverLowersKeepFrom) {
  grow(20);
  ASSERT_TRUE(open(Step(9)).is_ok());
  pin(Step(4));
  EXPECT_EQ(report(Step(12)).value().keep_from, Step(9));
  EXPECT_EQ(report(Step(5)).value(), cursor(9, 5, 2)) << "behind what it keeps";
  pin(Step(12), "b");
  EXPECT_EQ(report(Step(6)).value(), cursor(9, 6, 3));
}

TEST_F(LiveCursors, APinAheadOfTheCursorDoesNotRaiseKeepFrom) {
  grow(20);
  pin(Step(15), "earlier-run");
  ASSERT_TRUE(open(Step(3)).is_ok());
  EXPECT_EQ(report(Step(7)).value().keep_from, Step(3)) << "a slower rank may still be there";
  EXPECT_EQ(run_trim(*other_).first_step, Step(3));
  EXPECT_EQ(report(Step(14)).value().keep_from, Step(3));
  pin(Step(5), "checkpoint");
  EXPECT_EQ(report(Step(14)).value().keep_from, Step(5));
  ASSERT_TRUE(unpin(*other_, "g", "checkpoint", {}).is_ok());
  EXPECT_EQ(report(Step(15)).value().keep_from, Step(15)) << "it has come so far";
}

TEST_F(LiveCursors, PinsBelowKeepFromHoldNothingBack) {
  grow(20);
  ASSERT_TRUE(open(Step(3)).is_ok());
  pin(Step(1), "old");  // Perhaps one that came too late and was not removed.
  pin(Step(6), "new");
  EXPECT_EQ(report(Step(10)).value().keep_from, Step(6));
}

TEST_F(LiveCursors, PinsOfOtherGroupsDoNotMatter) {
  grow(20);
  ASSERT_TRUE(open(Step(3)).is_ok());
  ASSERT_TRUE(pin_step(*other_, {.group = "f", .id = "a", .step = Step(6)}, {}).is_ok());
  EXPECT_EQ(report(Step(10)).value().keep_from, Step(3));
}

TEST_F(LiveCursors, OnlyAnOpenOneCanReport) {
  EXPECT_TRUE(report(Step(0)).is(ErrorKind::kNotFound));
  EXPECT_TRUE(close().is(ErrorKind::kNotFound));
  EXPECT_FALSE(exists(kCursorKey));
  ASSERT_TRUE(open(Step(0)).is_ok());
  ASSERT_TRUE(close().is_ok());
  EXPECT_TRUE(report(Step(0)).is(ErrorKind::kConflict));
  EXPECT_EQ(now(), cursor(0, 0, 1, true));
}

TEST_F(LiveCursors, BadNamesPutNothing) {
  for (const std::string bad : {"", "A", "a/b", "-a"}) {
    EXPECT_TRUE(open_live_cursor(*stream_, bad, Step(0), {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(report_live_cursor(*stream_, bad, Step(0), {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(close_live_cursor(*stream_, bad, {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(read_live_cursor(*stream_, bad, {}).is(ErrorKind::kInvalid));
  }
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(LiveCursors, NeedAStoreThatReplacesOnCondition) {
  objects_.set_capabilities({.conditional_create = true, .conditional_replace = false});
  const auto opened = open(Step(0));
  EXPECT_TRUE(opened.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("If-Match"));
  EXPECT_TRUE(report(Step(0)).is(ErrorKind::kInvalid));
  EXPECT_TRUE(close().is(ErrorKind::kInvalid));
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(LiveCursors, AnyReplyOfAPutIsSettled) {
  grow(20);
  std::uint64_t counter = 0;
  for (const Answer answer :
       {Answer::kLostReply, Answer::kLostRequest, Answer::kConflict, Answer::kUnavailable}) {
    SCOPED_TRACE(static_cast<int>(answer));
    next_put(answer);
    EXPECT_EQ(open(Step(3)).value(), cursor(3, 3, counter));
    next_put(answer);
    EXPECT_EQ(report(Step(5)).value(), cursor(3, 5, counter + 1));
    next_put(answer);
    EXPECT_TRUE(close().is_ok());
    EXPECT_EQ(now(), cursor(3, 5, counter + 2, true));
    counter += 3;
  }
}

TEST_F(LiveCursors, AnotherWriterComesFirst) {
  grow(20);
  next_put(Answer::kPass, [this] { open_live_cursor(*other_, "g", Step(7), {}).value(); });
  EXPECT_EQ(open(Step(3)).value(), cursor(3, 3, 1)) << "after the other's";
  next_put(Answer::kPass, [this] { report_live_cursor(*other_, "g", Step(4), {}).value(); });
  EXPECT_EQ(report(Step(5)).value(), cursor(3, 5, 3));
  next_put(Answer::kPass, [this] { ASSERT_TRUE(close_live_cursor(*other_, "g", {}).is_ok()); });
  EXPECT_TRUE(report(Step(6)).is(ErrorKind::kConflict));
  EXPECT_EQ(now(), cursor(3, 5, 4, true));
}

TEST_F(LiveCursors, APutThatArrivesLateDoesNothing) {
  grow(20);
  ASSERT_TRUE(open(Step(3)).is_ok());
  const auto before = memory_.get(kCursorKey, {}, {}).value();
  ASSERT_TRUE(report(Step(5)).is_ok());
  // The same numbers again: the nonce makes another content of them.
  ASSERT_TRUE(open(Step(3)).is_ok());
  const auto late = objstore::put_bytes(memory_, kCursorKey, as_bytes("late"),
                                        PutCondition::matches(*before->etag), {});
  EXPECT_EQ(late->outcome, objstore::PutOutcome::kConditionFailed);
}

TEST_F(LiveCursors, OtherErrorsEndTheCall) {
  next_put(Answer::kForbidden);
  const auto forbidden = open(Step(0));
  EXPECT_TRUE(forbidden.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(forbidden.status().message()), HasSubstr("pin/g/live"));
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(open(Step(0)).is(ErrorKind::kExhausted));
  EXPECT_FALSE(exists(kCursorKey));
  objects_.next({.operation = Operation::kGet, .prefix = "pin/", .answer = Answer::kForbidden});
  EXPECT_TRUE(open(Step(0)).is(ErrorKind::kInvalid));
}

TEST_F(LiveCursors, AnUnsettledPutIsAnUnknownOutcome) {
  objects_.next({.operation = Operation::kPut, .answer = Answer::kLostRequest, .times = 100});
  const auto soon = runtime_.within(std::chrono::milliseconds(100));
  EXPECT_TRUE(open(Step(0), soon).is(ErrorKind::kUnknownOutcome));
  objects_.forget_script();
  objects_.next({.operation = Operation::kPut, .answer = Answer::kUnavailable, .times = 100});
  EXPECT_TRUE(
      open(Step(0), runtime_.within(std::chrono::milliseconds(100))).is(ErrorKind::kUnavailable));
  objects_.forget_script();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(open(Step(0), {.stop = stop.get_token()}).is(ErrorKind::kCancelled));
}

TEST_F(LiveCursors, ATrimmedStepDisturbsNobody) {
  grow(20);
  pin(Step(9));
  ASSERT_TRUE(open(Step(10)).is_ok());
  run_trim(*other_);
  const auto opened = open(Step(8));
  EXPECT_TRUE(opened.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("begins at step 9"));
  EXPECT_EQ(now(), cursor(10, 10, 0)) << "whoever has it now goes on";
}

TEST_F(LiveCursors, TooLateIsClosedAgain) {
  grow(20);
  pin(Step(9));
  next_put(Answer::kPass, [this] { run_trim(*other_); });
  const auto opened = open(Step(8));
  EXPECT_TRUE(opened.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("begins at step 9"));
  EXPECT_EQ(now(), cursor(8, 8, 1, true));
}

TEST_F(LiveCursors, TooLateDoesNotCloseWhatAnotherOpenedSince) {
  grow(20);
  pin(Step(9));
  objects_.next({.operation = Operation::kPut,
                 .prefix = std::string(kCursorKey),
                 .before = [this] { run_trim(*other_); },
                 .after = [this] { open_live_cursor(*other_, "g", Step(12), {}).value(); }});
  EXPECT_TRUE(open(Step(8)).is(ErrorKind::kNotFound));
  EXPECT_EQ(now(), cursor(12, 12, 1));
}

TEST_F(LiveCursors, WhatCannotBeClosedAgainIsNamed) {
  grow(20);
  pin(Step(9));
  next_put(Answer::kPass, [this] { run_trim(*other_); });
  next_put(Answer::kForbidden);
  const auto opened = open(Step(8));
  EXPECT_TRUE(opened.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("close it"));
  EXPECT_EQ(run_trim().first_step, Step(9)) << "it keeps nothing";
}

TEST_F(LiveCursors, LoweringWithdrawsAnIntent) {
  grow(20);
  ASSERT_TRUE(open(Step(9)).is_ok());
  announce(Step(9));
  ASSERT_TRUE(open(Step(4)).is_ok());
  EXPECT_EQ(newest(*other_)->head.trim_intent, std::nullopt);
  EXPECT_EQ(run_trim().first_step, Step(4));
}

TEST_F(LiveCursors, AnErrorOfTheHandshakeSaysWhatToDo) {
  grow(20);
  ASSERT_TRUE(open(Step(9)).is_ok());
  announce(Step(9));
  objects_.next({.operation = Operation::kPut, .prefix = "m/", .answer = Answer::kForbidden});
  const auto opened = open(Step(4));
  EXPECT_TRUE(opened.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("open it again"));
  EXPECT_TRUE(open(Step(4)).is_ok());
}

TEST_F(LiveCursors, AreListedByGroup) {
  grow(10);
  pin(Step(1));
  const LiveCursor z = open_live_cursor(*other_, "z", Step(1), {}).value();
  const LiveCursor a = open_live_cursor(*other_, "a", Step(2), {}).value();
  LiveCursor g = open(Step(3)).value();
  ASSERT_TRUE(close().is_ok());
  g.closed = true;
  ++g.counter;
  put("pin/b/lives", to_bytes("x"));
  EXPECT_THAT(list_live_cursors(*stream_, {}).value(), ElementsAre(a, g, z));
}

TEST_F(LiveCursors, DamageIsCorruption) {
  ASSERT_TRUE(open(Step(0)).is_ok());
  const auto good = memory_.get(kCursorKey, {}, {}).value();
  put("pin/f/live", good->bytes);
  const auto listed = list_live_cursors(*stream_, {});
  EXPECT_TRUE(listed.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(listed.status().message()), HasSubstr("pin/f/live: at byte"));
  EXPECT_TRUE(read_live_cursor(*stream_, "f", {}).is(ErrorKind::kCorruption));
  EXPECT_TRUE(open_live_cursor(*stream_, "f", Step(0), {}).is(ErrorKind::kCorruption));
  EXPECT_TRUE(read_live_cursor(*stream_, "g", {}).is_ok());
}

TEST_F(LiveCursors, OneThatVanishesIsCorruption) {
  ASSERT_TRUE(open(Step(0)).is_ok());
  before(1, Operation::kGet, std::string(kCursorKey), [this] {
    const std::string key(kCursorKey);
    ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  });
  const auto listed = list_live_cursors(*stream_, {});
  EXPECT_TRUE(listed.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(listed.status().message()),
              HasSubstr("pin/g/live: missing, though it was listed and nothing removes"));
}

}  // namespace
}  // namespace batchloom::store
