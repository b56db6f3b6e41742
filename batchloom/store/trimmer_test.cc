// SPDX-License-Identifier: Apache-2.0
// Whole trims, and pins that are put at each moment of one.
#include "batchloom/store/trimmer.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "batchloom/store/pin_codec.h"
#include "batchloom/store/trim.h"
#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::HasSubstr;

class Trimmer : public TrimTest {
 protected:
  Result<TrimReport> try_trim(const CallOptions& call = {}) {
    ManifestReader reader(*stream_);
    return trim(*stream_, reader, call);
  }
  /// A trim by a process that has a safeguard broken.
  TrimReport trim_without(Safeguard safeguard) {
    return run_trim(
        *open_stream({.limits = tiny_limits(), .safeguards = {.broken = safeguard, .on_use = {}}}));
  }
  std::optional<TrimIntent> intent() { return newest(*other_)->head.trim_intent; }
  Slot slot() { return newest(*other_)->head.slot; }
  /// Another opens a live cursor, for group "c".
  void open_cursor(Step step) { open_live_cursor(*other_, "c", step, {}).value(); }
  void remove_pin(const std::string& id = "a") {
    ASSERT_EQ(unpin(*other_, "g", id, {}).value(), 1u);
  }
};

TEST_F(Trimmer, TrimsToTheOldestPin) {
  grow(10);
  pin(Step(7), "b");
  pin(Step(4), "a");
  const Slot before = slot();
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(4));
  EXPECT_EQ(report.steps, 4u);
  EXPECT_EQ(report.withdrawn, 0u);
  EXPECT_EQ(first_step(), Step(4));
  EXPECT_EQ(intent(), std::nullopt);
  EXPECT_EQ(slot(), before + 2);
  EXPECT_EQ(counted("store_trims"), 1u);
  expect_sound();
  remove_pin();
  EXPECT_EQ(run_trim().steps, 3u);
  EXPECT_EQ(first_step(), Step(7));
}

TEST_F(Trimmer, WithoutAnyPinNothingIsTrimmed) {
  grow(10);
  const Slot before = slot();
  EXPECT_EQ(run_trim().first_step, Step(0));
  EXPECT_EQ(slot(), before);
  EXPECT_EQ(objects_.count(Operation::kPut), 0u);
}

TEST_F(Trimmer, WhereThePinIsReachedNothingIsCommitted) {
  grow(10);
  pin(Step(4));
  run_trim();
  const Slot before = slot();
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(4));
  EXPECT_EQ(report.steps, 0u);
  EXPECT_EQ(slot(), before);
}

TEST_F(Trimmer, APinOfTheNextStepTrimsAllThereIs) {
  grow(10);
  pin(Step(12));
  EXPECT_EQ(run_trim().first_step, Step(10));
  const Slot before = slot();
  EXPECT_EQ(run_trim().steps, 0u);
  EXPECT_EQ(slot(), before);
  grow(5);
  EXPECT_EQ(run_trim().first_step, Step(12));
}

TEST_F(Trimmer, LiveCursorsCountUntilTheyAreClosed) {
  grow(10);
  open_cursor(Step(3));
  EXPECT_EQ(run_trim().first_step, Step(3)) << "a live cursor will do for a pin";
  pin(Step(6));
  EXPECT_EQ(run_trim().first_step, Step(3));
  ASSERT_TRUE(close_live_cursor(*other_, "c", {}).is_ok());
  EXPECT_EQ(run_trim().first_step, Step(6));
  remove_pin();
  EXPECT_EQ(run_trim().first_step, Step(6)) << "a closed one does not";
}

TEST_F(Trimmer, WhatCameTooLateIsPassedOver) {
  grow(10);
  pin(Step(5));
  run_trim();
  // Put by who died before the handshake.
  const Pin late{.name = {"g", "late", Nonce(1)}, .step = Step(2)};
  put(pin_key(late.name), encode_pin(stream_->uuid(), late));
  EXPECT_EQ(run_trim().first_step, Step(5));
  remove_pin();
  EXPECT_EQ(run_trim().first_step, Step(5)) << "no pin but that one: nothing is trimmed";
  pin(Step(8), "c");
  EXPECT_EQ(run_trim().first_step, Step(8));
}

TEST_F(Trimmer, SomethingDamagedStopsIt) {
  grow(10);
  pin(Step(5));
  put("pin/g/x-00000000000000aa", to_bytes("x"));
  const Slot before = slot();
  const auto trimmed = try_trim();
  EXPECT_TRUE(trimmed.is(ErrorKind::kCorruption));
  for (const std::string part : {"pin/g/x-00000000000000aa", "remove that object"}) {
    EXPECT_THAT(std::string(trimmed.status().message()), HasSubstr(part));
  }
  ASSERT_EQ(unpin(*other_, "g", "x", {}).value(), 1u);
  put("pin/g/live", to_bytes("x"));
  EXPECT_TRUE(try_trim().is(ErrorKind::kCorruption));
  EXPECT_EQ(slot(), before);
}

TEST_F(Trimmer, SomethingDamagedBeforeTheSecondListingTrimsNothing) {
  grow(10);
  pin(Step(5));
  before_second_listing([this] { put("pin/g/x-00000000000000aa", to_bytes("x")); });
  EXPECT_TRUE(try_trim().is(ErrorKind::kCorruption));
  EXPECT_EQ(first_step(), Step(0));
  ASSERT_EQ(unpin(*other_, "g", "x", {}).value(), 1u);
  EXPECT_EQ(run_trim().first_step, Step(5)) << "its own intent was left";
}

// A pin of step 3, put at each moment of a trim to 8.

TEST_F(Trimmer, APinBeforeTheIntentIsSeenByTheSecondListing) {
  grow(10);
  pin(Step(8));
  before_intent([this] { pin(Step(3), "new"); });
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(3));
  EXPECT_EQ(report.withdrawn, 0u);
}

TEST_F(Trimmer, WithoutTheSecondListingThatPinIsLost) {
  grow(10);
  pin(Step(8));
  before_intent([this] { pin(Step(3), "new"); });
  EXPECT_EQ(trim_without(Safeguard::kSecondPinListing).first_step, Step(8));
}

TEST_F(Trimmer, APinBeforeTheSecondListingWithdrawsTheIntent) {
  grow(10);
  pin(Step(8));
  before_second_listing([this] { pin(Step(3), "new"); });
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(3));
  EXPECT_EQ(report.withdrawn, 1u);
  EXPECT_EQ(counted("store_trim_intents_lost"), 1u);
  EXPECT_EQ(other_counters_.counter("store_intents_withdrawn").value(), 1u);
}

TEST_F(Trimmer, APinAfterTheSecondListingWithdrawsTheIntent) {
  grow(10);
  pin(Step(8));
  before_completion([this] { pin(Step(3), "new"); });
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(3));
  EXPECT_EQ(report.withdrawn, 1u);
}

TEST_F(Trimmer, WithoutTheIntentsOwnerThatPinIsLost) {
  grow(10);
  pin(Step(8));
  before_completion([this] { pin(Step(3), "new"); });
  EXPECT_EQ(trim_without(Safeguard::kIntentOwner).first_step, Step(8));
}

TEST_F(Trimmer, APinAfterTheTrimIsRefused) {
  grow(10);
  pin(Step(8));
  objects_.next({.operation = Operation::kPut, .prefix = "m/"});
  objects_.next({.operation = Operation::kPut, .prefix = "m/", .after = [this] {
                   EXPECT_TRUE(pin_step(*other_, {.group = "g", .id = "new", .step = Step(3)}, {})
                                   .is(ErrorKind::kNotFound));
                 }});
  EXPECT_EQ(run_trim().first_step, Step(8));
  EXPECT_EQ(keys("pin/").size(), 1u);
}

TEST_F(Trimmer, ACursorIsLoweredAtEachMoment) {
  const std::function<void(std::function<void()>)> moments[] = {
      [this](auto act) { before_intent(std::move(act)); },
      [this](auto act) { before_second_listing(std::move(act)); },
      [this](auto act) { before_completion(std::move(act)); },
  };
  Step kept(0);
  for (const auto& moment : moments) {
    grow(10);
    open_cursor(kept + 8);
    moment([this, kept] { open_cursor(kept + 3); });
    EXPECT_EQ(run_trim().first_step, kept + 3);
    kept = kept + 3;
  }
}

// A pin's writer is what a test looks at, and a trim comes at each of its moments.

TEST_F(Trimmer, ATrimBeforeThePinIsPutRefusesIt) {
  grow(10);
  pin(Step(8));
  before(1, Operation::kPut, "pin/", [this] { run_trim(*other_); });
  EXPECT_TRUE(
      pin_step(*stream_, {.group = "g", .id = "b", .step = Step(3)}, {}).is(ErrorKind::kNotFound));
}

TEST_F(Trimmer, ATrimAfterThePinIsPutSeesIt) {
  grow(10);
  pin(Step(8));
  before(1, Operation::kGet, "m/", [this] { run_trim(*other_); });
  EXPECT_TRUE(pin_step(*stream_, {.group = "g", .id = "b", .step = Step(3)}, {}).is_ok());
  EXPECT_EQ(first_step(), Step(3));
}

TEST_F(Trimmer, ATrimBeforeTheWithdrawalSeesThePin) {
  grow(10);
  pin(Step(8));
  announce(Step(8));
  before(1, Operation::kPut, "m/", [this] { run_trim(*other_); });
  EXPECT_TRUE(pin_step(*stream_, {.group = "g", .id = "b", .step = Step(3)}, {}).is_ok());
  EXPECT_EQ(first_step(), Step(3));
}

// Several trimmers.

TEST_F(Trimmer, AnIntentForTheSameStepIsTakenOver) {
  grow(10);
  pin(Step(8));
  announce(Step(8));  // And died.
  const Slot before = slot();
  EXPECT_EQ(run_trim().first_step, Step(8));
  EXPECT_EQ(slot(), before + 1);
}

TEST_F(Trimmer, AnIntentForAnotherStepIsReplaced) {
  for (const std::uint64_t left : {5U, 14U}) {
    grow(10);
    announce(Step(left));
    pin(first_step() + 2, "a");
    announce(Step(left));  // After the pin's handshake.
    EXPECT_EQ(run_trim().steps, 2u);
    remove_pin();
  }
  EXPECT_EQ(first_step(), Step(4));
  EXPECT_EQ(intent(), std::nullopt);
}

TEST_F(Trimmer, APinMadeAfterADeadTrimmersIntentIsSafeFromIt) {
  grow(10);
  pin(Step(8));
  const TrimIntent dead = announce(Step(8));
  pin(Step(3), "b");
  EXPECT_NE(intent(), dead);
  EXPECT_EQ(run_trim().first_step, Step(3));
}

TEST_F(Trimmer, AnotherTrimsAsFarInBetween) {
  grow(10);
  pin(Step(8));
  before_intent([this] { run_trim(*other_); });
  EXPECT_EQ(run_trim().steps, 0u);
  grow(10);
  remove_pin();
  pin(Step(12));
  before_second_listing([this] { run_trim(*other_); });
  EXPECT_EQ(run_trim().steps, 0u);
  grow(10);
  remove_pin();
  pin(Step(16));
  before_completion([this] { run_trim(*other_); });
  const TrimReport report = run_trim();
  EXPECT_EQ(report.steps, 0u);
  EXPECT_EQ(report.withdrawn, 0u);
  EXPECT_EQ(report.first_step, Step(16));
  EXPECT_EQ(counted("store_trims"), 0u);
}

TEST_F(Trimmer, AnotherReplacesTheIntent) {
  grow(10);
  pin(Step(8));
  before_completion([this] { announce(Step(6)); });
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(8));
  EXPECT_EQ(report.withdrawn, 1u);
}

TEST_F(Trimmer, ALateOneDoesNotLowerTheFirstStep) {
  const auto stall = [this] {
    // Since (a), another has trimmed to 8, a pin came too late, and its writer has died.
    const Pin late{.name = {"g", "late", Nonce(1)}, .step = first_step() + 2};
    pin(first_step() + 8, "b");
    run_trim(*other_);
    ASSERT_EQ(unpin(*other_, "g", "b", {}).value(), 1u);
    put(pin_key(late.name), encode_pin(stream_->uuid(), late));
  };
  grow(10);
  pin(Step(9));
  before_intent(stall);
  EXPECT_EQ(run_trim().first_step, Step(8));
  EXPECT_EQ(intent(), std::nullopt);
  EXPECT_EQ(run_trim().first_step, Step(9)) << "the next round passes over it";
  grow(10);
  remove_pin();
  pin(Step(18));
  before_intent(stall);
  EXPECT_EQ(trim_without(Safeguard::kFirstStepMax).first_step, Step(11)) << "it was 17";
}

TEST_F(Trimmer, ABatchInBetweenDoesNotMatter) {
  grow(10);
  pin(Step(8));
  before_intent([this] { grow(1); });
  EXPECT_EQ(run_trim().withdrawn, 0u);
  EXPECT_EQ(first_step(), Step(8));
  remove_pin();
  pin(Step(10));
  before_completion([this] { grow(1); });
  EXPECT_EQ(run_trim().withdrawn, 0u);
  EXPECT_EQ(first_step(), Step(10));
}

// What the store answers.

TEST_F(Trimmer, LostRepliesAreSettled) {
  for (const std::size_t put : {1U, 2U}) {
    for (const Answer answer : {Answer::kLostReply, Answer::kLostRequest, Answer::kConflict}) {
      SCOPED_TRACE(testing::Message() << "put " << put << ", answer " << static_cast<int>(answer));
      grow(5);
      const Step target = first_step() + 3;
      pin(target);
      if (put == 2) objects_.next({.operation = Operation::kPut, .prefix = "m/"});
      objects_.next({.operation = Operation::kPut, .prefix = "m/", .answer = answer});
      const TrimReport report = run_trim();
      EXPECT_EQ(report.first_step, target);
      EXPECT_EQ(report.steps, 3u);
      EXPECT_EQ(intent(), std::nullopt);
      remove_pin();
    }
  }
}

TEST_F(Trimmer, ALostReplyOfTheIntentThatOthersBuiltOn) {
  grow(10);
  pin(Step(8));
  objects_.next(
      {.operation = Operation::kPut, .prefix = "m/", .answer = Answer::kLostReply, .after = [this] {
         grow(1);
       }});
  EXPECT_EQ(run_trim().withdrawn, 0u);
  EXPECT_EQ(first_step(), Step(8));
}

TEST_F(Trimmer, ALostReplyOfTheCompletionThatOthersBuiltOn) {
  grow(10);
  pin(Step(8));
  objects_.next({.operation = Operation::kPut, .prefix = "m/"});
  objects_.next(
      {.operation = Operation::kPut, .prefix = "m/", .answer = Answer::kLostReply, .after = [this] {
         grow(1);
       }});
  const TrimReport report = run_trim();
  EXPECT_EQ(report.first_step, Step(8));
  EXPECT_EQ(report.withdrawn, 0u);
}

TEST_F(Trimmer, GivesUpAtTheDeadline) {
  grow(10);
  pin(Step(8));
  // Whoever comes in between comes each time.
  objects_.next({.operation = Operation::kList, .prefix = "pin/", .times = 1000, .before = [this] {
                   if (intent()) pin(Step(8), "again"), announce(Step(2));
                 }});
  EXPECT_TRUE(
      try_trim(runtime_.within(std::chrono::milliseconds(500))).is(ErrorKind::kUnavailable));
  EXPECT_LE(first_step(), Step(8));
  objects_.forget_script();
}

TEST_F(Trimmer, StoppedAtAnyRequestTheNextOneEndsTheSame) {
  for (const Answer answer : {Answer::kForbidden, Answer::kLostReply}) {
    for (std::size_t number = 0;; ++number) {
      SCOPED_TRACE(testing::Message() << "request " << number);
      grow(4);
      const Step target = first_step() + 3;
      pin(target);
      objects_.forget_requests();
      objects_.answer_request(number, answer);
      static_cast<void>(try_trim());
      const bool reached = objects_.requests().size() > number;
      EXPECT_TRUE(first_step() == target || first_step() + 3 == target);
      objects_.answer_request(SIZE_MAX, Answer::kPass);
      EXPECT_EQ(run_trim().first_step, target);
      EXPECT_EQ(intent(), std::nullopt);
      expect_sound();
      remove_pin();
      if (!reached) break;
      ASSERT_LT(number, 100u);
    }
  }
}

TEST_F(Trimmer, APreviewIsWhatATrimLeaves) {
  const auto expect_same = [this] {
    const HeadPtr before = newest(*other_);
    const auto kept = lowest_kept_step(*stream_, before->head.first_step, {}).value();
    const Head preview = preview_trim(before->head, kept, Safeguards());
    run_trim();
    Head after = newest(*other_)->head;
    EXPECT_EQ(preview.slot, after.slot);
    after.previous_crc = preview.previous_crc;
    after.txid = preview.txid;
    after.writer = preview.writer;
    EXPECT_EQ(preview, after);
  };
  expect_same();
  grow(4, 3);
  expect_same();
  pin(Step(7));
  expect_same();
  remove_pin();
  pin(Step(11));
  announce(Step(11));
  expect_same();
  remove_pin();
  pin(Step(100));
  expect_same();
  expect_same();
}

}  // namespace
}  // namespace batchloom::store
