// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/pins.h"

#include <gmock/gmock.h>

#include "batchloom/store/pin_codec.h"
#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Pins : public TrimTest {
 protected:
  Result<Pin> try_pin(Step step, const std::string& id = "a", const CallOptions& call = {}) {
    return pin_step(*stream_, {.group = "g", .id = id, .step = step}, call);
  }
  std::vector<std::string> pin_keys() { return keys("pin/"); }
  std::optional<TrimIntent> intent() { return newest(*other_)->head.trim_intent; }
  void expect_refused(const Result<Pin>& pinned, std::string_view first_step) {
    EXPECT_TRUE(pinned.is(ErrorKind::kNotFound)) << pinned.status().to_string();
    EXPECT_THAT(std::string(pinned.status().message()),
                HasSubstr("begins at step " + std::string(first_step)));
  }
};

TEST_F(Pins, StandUntilTheyAreRemoved) {
  grow(10);
  const Pin pinned = try_pin(Step(5)).value();
  EXPECT_EQ(pinned.name.group, "g");
  EXPECT_EQ(pinned.name.id, "a");
  EXPECT_THAT(pin_keys(), ElementsAre(pin_key(pinned.name)));
  EXPECT_THAT(list_pins(*stream_, {}).value(), ElementsAre(pinned));
  EXPECT_EQ(counted("store_pins"), 1u);
  EXPECT_EQ(run_trim().first_step, Step(5));
  EXPECT_EQ(unpin(*stream_, "g", "a", {}).value(), 1u);
  EXPECT_THAT(pin_keys(), IsEmpty());
  EXPECT_EQ(unpin(*stream_, "g", "a", {}).value(), 0u);
}

TEST_F(Pins, APinCommitsNothingWhereNoTrimIsUnderWay) {
  grow(10);
  const Slot slot = newest(*other_)->head.slot;
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  EXPECT_EQ(newest(*other_)->head.slot, slot);
  EXPECT_EQ(objects_.count(Operation::kPut), 1u);
}

TEST_F(Pins, TheHeadIsReadAfterThePut) {
  grow(10);
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  const auto& requests = objects_.requests();
  ASSERT_THAT(requests, Not(IsEmpty()));
  EXPECT_EQ(requests.front().operation, Operation::kPut);
  EXPECT_GT(requests.size(), 2u);
}

TEST_F(Pins, BadNamesPutNothing) {
  for (const std::string bad : {"", "A", "a/b", "-a", "a.b"}) {
    EXPECT_TRUE(
        pin_step(*stream_, {.group = bad, .id = "a", .step = Step(0)}, {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(
        pin_step(*stream_, {.group = "g", .id = bad, .step = Step(0)}, {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(unpin(*stream_, bad, "a", {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(unpin(*stream_, "g", bad, {}).is(ErrorKind::kInvalid));
    EXPECT_TRUE(list_pins(*stream_, bad, {}).is(ErrorKind::kInvalid));
  }
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(Pins, TooLateIsRefusedAndLeavesNothing) {
  grow(10);
  pin(Step(7));
  run_trim(*other_);
  expect_refused(try_pin(Step(6)), "7");
  EXPECT_THAT(pin_keys(), SizeIs(1));
  EXPECT_EQ(counted("store_pins_refused"), 1u);
  EXPECT_EQ(counted("store_pins"), 0u);
  EXPECT_TRUE(try_pin(Step(7)).is_ok());
}

TEST_F(Pins, ARefusedPinThatCannotBeRemovedIsNamed) {
  grow(10);
  pin(Step(7));
  run_trim(*other_);
  for (const Answer answer : {Answer::kForbidden, Answer::kDamaged}) {
    objects_.next({.operation = Operation::kRemove, .answer = answer});
    const auto pinned = try_pin(Step(6), "late");
    expect_refused(pinned, "7");
    EXPECT_THAT(std::string(pinned.status().message()), HasSubstr("unpin 'late' of group 'g'"));
  }
  EXPECT_THAT(pin_keys(), SizeIs(2)) << "the second was only said to be left";
  EXPECT_EQ(run_trim().first_step, Step(7)) << "it promises nothing";
  EXPECT_EQ(unpin(*stream_, "g", "late", {}).value(), 1u);
}

TEST_F(Pins, AnIntentAboveIsWithdrawn) {
  grow(10);
  announce(Step(8));
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  EXPECT_EQ(intent(), std::nullopt);
  EXPECT_EQ(first_step(), Step(0));
  EXPECT_EQ(counted("store_intents_withdrawn"), 1u);
}

TEST_F(Pins, AnIntentAtOrBelowStays) {
  grow(10);
  const TrimIntent before = announce(Step(5));
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  ASSERT_TRUE(try_pin(Step(6)).is_ok());
  EXPECT_EQ(intent(), before);
  EXPECT_EQ(counted("store_intents_withdrawn"), 0u);
}

TEST_F(Pins, AWithdrawalIsSettledWhateverItsReply) {
  grow(10);
  for (const Answer answer : {Answer::kLostReply, Answer::kLostRequest, Answer::kConflict}) {
    announce(Step(8));
    objects_.next({.operation = Operation::kPut, .prefix = "m/", .answer = answer});
    ASSERT_TRUE(try_pin(Step(5)).is_ok());
    EXPECT_EQ(intent(), std::nullopt);
  }
}

TEST_F(Pins, AfterALostRaceTheNewHeadDecides) {
  grow(10);
  announce(Step(8));
  // Somebody commits a batch: the intent is still to be withdrawn.
  before(1, Operation::kPut, "m/", [this] { grow(1); });
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  EXPECT_EQ(intent(), std::nullopt);
  EXPECT_EQ(newest(*other_)->head.next_step, Step(11));
  // Another withdraws it: nothing is left to do.
  announce(Step(8));
  before(1, Operation::kPut, "m/", [this] { pin(Step(5), "b"); });
  ASSERT_TRUE(try_pin(Step(5)).is_ok());
  EXPECT_EQ(counted("store_intents_withdrawn"), 1u) << "the second was the other's";
  // Its owner completes it: the listing was before this pin's put.
  announce(Step(8));
  before(1, Operation::kPut, "m/", [this] { complete(Step(8)); });
  expect_refused(try_pin(Step(7)), "8");
}

TEST_F(Pins, ALostReplyOfThePutIsSettled) {
  grow(10);
  for (const Answer answer : {Answer::kLostReply, Answer::kLostRequest, Answer::kUnavailable}) {
    objects_.next({.operation = Operation::kPut, .prefix = "pin/", .answer = answer});
    ASSERT_TRUE(try_pin(Step(5)).is_ok());
  }
  EXPECT_THAT(pin_keys(), SizeIs(3));
}

TEST_F(Pins, AnErrorAfterThePutNamesThePin) {
  grow(10);
  objects_.next({.operation = Operation::kGet, .prefix = "gc/", .answer = Answer::kForbidden});
  const auto pinned = try_pin(Step(5));
  EXPECT_TRUE(pinned.is(ErrorKind::kInvalid));
  EXPECT_THAT(pin_keys(), SizeIs(1));
  EXPECT_THAT(std::string(pinned.status().message()), HasSubstr(pin_keys()[0]));
  EXPECT_EQ(unpin(*stream_, "g", "a", {}).value(), 1u);
  objects_.next({.operation = Operation::kPut, .prefix = "pin/", .answer = Answer::kDiskFull});
  EXPECT_TRUE(try_pin(Step(5)).is(ErrorKind::kExhausted));
  EXPECT_THAT(pin_keys(), IsEmpty());
}

TEST_F(Pins, UnpinTakesAllOfOneNameAndNoOther) {
  grow(10);
  pin(Step(1), "a");
  pin(Step(2), "a");
  pin(Step(3), "a-b");
  pin(Step(4), "b");
  ASSERT_TRUE(pin_step(*other_, {.group = "g2", .id = "a", .step = Step(5)}, {}).is_ok());
  ASSERT_TRUE(open_live_cursor(*other_, "g", Step(0), {}).is_ok());
  EXPECT_EQ(unpin(*stream_, "g", "a", {}).value(), 2u);
  EXPECT_THAT(pin_keys(), SizeIs(4));
  EXPECT_THAT(list_pins(*stream_, "g", {}).value(), SizeIs(2));
  EXPECT_TRUE(exists("pin/g/live"));
}

TEST_F(Pins, AnUnpinThatFailsSaysWhichPinIsLeft) {
  const Pin pinned = pin(Step(0));
  objects_.next({.operation = Operation::kRemove, .answer = Answer::kDamaged});
  const auto removed = unpin(*stream_, "g", "a", {});
  EXPECT_TRUE(removed.is(ErrorKind::kUnavailable));
  EXPECT_THAT(std::string(removed.status().message()), HasSubstr(pin_key(pinned.name)));
}

TEST_F(Pins, AreListedByStepThenName) {
  grow(10);
  const Pin c = pin(Step(3), "c");
  const Pin b = pin(Step(7), "b");
  const Pin a = pin(Step(7), "a");
  const Pin other = pin_step(*other_, {.group = "f", .id = "z", .step = Step(7)}, {}).value();
  EXPECT_THAT(list_pins(*stream_, {}).value(), ElementsAre(c, other, a, b));
  EXPECT_THAT(list_pins(*stream_, "g", {}).value(), ElementsAre(c, a, b));
  EXPECT_THAT(list_pins(*stream_, "h", {}).value(), IsEmpty());
}

TEST_F(Pins, WhatVanishesWhileItIsListedIsLeftOut) {
  grow(10);
  pin(Step(3), "a");
  const Pin b = pin(Step(4), "b");
  before(1, Operation::kGet, "pin/", [this] { ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok()); });
  const auto listed = list_pins(*stream_, {}).value();
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed.back(), b);
  EXPECT_THAT(list_pins(*stream_, {}).value(), ElementsAre(b));
}

TEST_F(Pins, OtherNamesAreNoPins) {
  put("pin/g/readme", to_bytes("x"));
  put("pin/readme", to_bytes("x"));
  EXPECT_THAT(list_pins(*stream_, {}).value(), IsEmpty());
}

TEST_F(Pins, ADamagedPinIsCorruption) {
  grow(10);
  pin(Step(3), "a");
  const Pin pinned = pin(Step(4), "b");
  Bytes bytes = encode_pin(stream_->uuid(), pinned);
  bytes[50] ^= std::byte{1};
  put(pin_key(pinned.name), bytes);
  const auto listed = list_pins(*stream_, {});
  EXPECT_TRUE(listed.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(listed.status().message()), HasSubstr(pin_key(pinned.name)));
  bytes[50] ^= std::byte{1};
  put(pin_key({"g", "copy", Nonce(1)}), bytes);
  EXPECT_TRUE(list_pins(*stream_, {}).is(ErrorKind::kCorruption)) << "under another's name";
}

TEST_F(Pins, DamageOnTheWayIsReadAgain) {
  grow(10);
  const Pin pinned = pin(Step(3));
  objects_.next({.operation = Operation::kGet, .prefix = "pin/", .answer = Answer::kDamaged});
  EXPECT_THAT(list_pins(*stream_, {}).value(), ElementsAre(pinned));
}

TEST_F(Pins, EndAtTheDeadlineAndWhenStopped) {
  objects_.next({.operation = Operation::kPut, .answer = Answer::kUnavailable, .times = 100});
  EXPECT_TRUE(try_pin(Step(0), "a", runtime_.within(std::chrono::milliseconds(100)))
                  .is(ErrorKind::kUnavailable));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(try_pin(Step(0), "a", {.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  objects_.forget_script();
}

}  // namespace
}  // namespace batchloom::store
