// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/floor.h"

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using objstore::PutCondition;

class Floor : public StoreTest {
 protected:
  /// The floor as the store has it.
  Slot now() { return read_floor(*other_, {}).value(); }
  void next_put(Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "gc/floor",
                   .answer = answer,
                   .before = std::move(before)});
  }
  void put_floor_bytes(const Bytes& bytes) {
    ASSERT_TRUE(objstore::put_bytes(memory_, kFloorKey, bytes, PutCondition::none(), {}).is_ok());
  }
};

TEST_F(Floor, BeginsAtZero) {
  EXPECT_EQ(read_floor(*stream_, {}).value(), Slot(0));
}

TEST_F(Floor, RisesAndNeverFalls) {
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(5));
  EXPECT_EQ(raise_floor(*stream_, Slot(3), {}).value(), Slot(5));
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(5));
  EXPECT_EQ(now(), Slot(5));
}

TEST_F(Floor, ALostReplyIsSettledByReadingAgain) {
  next_put(Answer::kLostReply);
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(5));
  EXPECT_EQ(now(), Slot(5));
}

TEST_F(Floor, IsRaisedAgainWhereNothingArrived) {
  for (const Answer answer : {Answer::kLostRequest, Answer::kConflict, Answer::kUnavailable}) {
    const Slot target = now() + 2;
    next_put(answer);
    EXPECT_EQ(raise_floor(*stream_, target, {}).value(), target);
    EXPECT_EQ(now(), target);
  }
}

TEST_F(Floor, AnotherRaisesItFurtherMeanwhile) {
  next_put(Answer::kPass, [this] { raise_floor(*other_, Slot(7), {}).value(); });
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(7));
  EXPECT_EQ(now(), Slot(7));
}

TEST_F(Floor, AnotherRaisesItLessMeanwhile) {
  next_put(Answer::kPass, [this] { raise_floor(*other_, Slot(4), {}).value(); });
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(5));
  EXPECT_EQ(now(), Slot(5));
}

TEST_F(Floor, APutThatArrivesLateDoesNotLowerIt) {
  const auto before = memory_.get(kFloorKey, {}, {}).value();
  next_put(Answer::kLostRequest, [this] { raise_floor(*other_, Slot(9), {}).value(); });
  EXPECT_EQ(raise_floor(*stream_, Slot(5), {}).value(), Slot(9));
  const auto late = objstore::put_bytes(memory_, kFloorKey, encode_floor(stream_->uuid(), Slot(5)),
                                        PutCondition::matches(*before->etag), {});
  EXPECT_EQ(late->outcome, objstore::PutOutcome::kConditionFailed);
  EXPECT_EQ(now(), Slot(9));
}

TEST_F(Floor, GivesUpAtTheDeadline) {
  objects_.next({.operation = Operation::kPut, .answer = Answer::kUnavailable, .times = 100});
  const auto raised =
      raise_floor(*stream_, Slot(5), runtime_.within(std::chrono::milliseconds(200)));
  EXPECT_TRUE(raised.is(ErrorKind::kUnavailable)) << raised.status().to_string();
  EXPECT_EQ(now(), Slot(0));
  objects_.forget_script();
}

TEST_F(Floor, OtherErrorsEndTheCall) {
  next_put(Answer::kForbidden);
  EXPECT_TRUE(raise_floor(*stream_, Slot(5), {}).is(ErrorKind::kInvalid));
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(raise_floor(*stream_, Slot(5), {}).is(ErrorKind::kExhausted));
  EXPECT_EQ(now(), Slot(0));
}

TEST_F(Floor, AMissingOneIsCorruption) {
  const std::string key(kFloorKey);
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  const auto floor = read_floor(*stream_, {});
  EXPECT_TRUE(floor.is(ErrorKind::kCorruption));
  EXPECT_NE(floor.status().message().find("gc/floor"), std::string_view::npos);
  EXPECT_TRUE(raise_floor(*stream_, Slot(1), {}).is(ErrorKind::kCorruption));
  EXPECT_FALSE(exists(kFloorKey));
}

TEST_F(Floor, OneOfAnotherStreamIsCorruption) {
  StreamUuid foreign = stream_->uuid();
  foreign.bytes[3] ^= std::byte{1};
  put_floor_bytes(encode_floor(foreign, Slot(2)));
  EXPECT_TRUE(read_floor(*stream_, {}).is(ErrorKind::kCorruption));
}

TEST_F(Floor, DamageOnTheWayIsReadAgain) {
  objects_.next({.operation = Operation::kGet, .prefix = "gc/", .answer = Answer::kDamaged});
  EXPECT_EQ(read_floor(*stream_, {}).value(), Slot(0));
  EXPECT_EQ(objects_.count(Operation::kGet), 2u);
}

TEST_F(Floor, LastingDamageIsCorruption) {
  objects_.next(
      {.operation = Operation::kGet, .prefix = "gc/", .answer = Answer::kDamaged, .times = 3});
  EXPECT_TRUE(read_floor(*stream_, {}).is(ErrorKind::kCorruption));
}

}  // namespace
}  // namespace batchloom::store
