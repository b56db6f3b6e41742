// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/manifest_reader.h"

#include <cmath>
#include <map>

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

class Discovery : public StoreTest {
 protected:
  void SetUp() override { runs_ = 0; }

  Result<HeadPtr> find() {
    objects_.forget_requests();
    ++runs_;
    return reader_.latest({});
  }
  Slot found_slot() { return find().value()->head.slot; }
  /// The stream at slot `newest`, with nothing left at or below `floor`.
  void move_to(Slot newest, Slot floor) {
    append_slots(*other_, newest - store::newest(*other_)->head.slot);
    remove_slots(*other_, floor);
  }
  /// What a stalled writer creates again.
  void resurrect(Slot slot) {
    Head head = empty_successor(*other_, Head{});
    head.slot = slot;
    head.previous_crc = 0xdead;
    put_head(*other_, head);
  }

  ManifestReader reader_{*stream_};
  int runs_ = 0;
};

TEST_F(Discovery, FindsGenesis) {
  EXPECT_EQ(found_slot(), Slot(1));
  EXPECT_EQ(reader_.cached()->head.slot, Slot(1));
  EXPECT_EQ(find().value(), reader_.cached()) << "nothing new: the very same head";
  EXPECT_EQ(objects_.requests().size(), 2u);
}

class DiscoveryAtLag : public Discovery, public testing::WithParamInterface<std::uint64_t> {
 protected:
  /// Slots are probed twice per doubling of the lag, besides two reads and the floor.
  static std::size_t most_requests(std::uint64_t lag) {
    return 4 + 2 * static_cast<std::size_t>(std::ceil(std::log2(lag)));
  }
};

TEST_P(DiscoveryAtLag, WarmNeedsLogarithmicallyManyRequests) {
  EXPECT_EQ(found_slot(), Slot(1));
  append_slots(*other_, GetParam());
  const HeadPtr head = find().value();
  EXPECT_EQ(head->head, newest(*other_)->head);
  EXPECT_EQ(head->head.slot, Slot(1 + GetParam()));
  EXPECT_LE(objects_.requests().size(), most_requests(GetParam()));
  EXPECT_EQ(objects_.count(Operation::kList), 0u);
  EXPECT_EQ(objects_.requests().back(), (Request{Operation::kGet, "gc/floor", 0}));
}

TEST_P(DiscoveryAtLag, ColdNeedsLogarithmicallyManyRequests) {
  append_slots(*other_, GetParam());
  EXPECT_EQ(found_slot(), Slot(1 + GetParam()));
  EXPECT_LE(objects_.requests().size(), 1 + most_requests(GetParam() + 1));
  EXPECT_EQ(objects_.count(Operation::kList), 0u);
}

INSTANTIATE_TEST_SUITE_P(Lags, DiscoveryAtLag, testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 100, 1000));

TEST_F(Discovery, ACachedHeadBelowTheFloorIsForgotten) {
  EXPECT_EQ(found_slot(), Slot(1));
  move_to(Slot(20), Slot(15));
  EXPECT_EQ(found_slot(), Slot(20));
  EXPECT_EQ(counted("store_manifest_rediscoveries"), 1u);
}

TEST_F(Discovery, TheFloorItselfIsDead) {
  append_slots(*other_, 1);
  EXPECT_EQ(found_slot(), Slot(2));
  move_to(Slot(4), Slot(3));
  EXPECT_EQ(found_slot(), Slot(4)) << "slot 3 is missing, as if slot 2 were the newest";
  EXPECT_EQ(counted("store_manifest_rediscoveries"), 1u);
}

TEST_F(Discovery, JustAboveTheFloorTheCacheCounts) {
  append_slots(*other_, 2);
  EXPECT_EQ(found_slot(), Slot(3));
  move_to(Slot(5), Slot(3));
  EXPECT_EQ(found_slot(), Slot(5));
  EXPECT_EQ(counted("store_manifest_rediscoveries"), 0u);
}

TEST_F(Discovery, ResurrectedSlotsAreNotTrusted) {
  EXPECT_EQ(found_slot(), Slot(1));
  move_to(Slot(20), Slot(15));
  resurrect(Slot(2));
  EXPECT_EQ(found_slot(), Slot(20));
  EXPECT_EQ(counted("store_manifest_rediscoveries"), 1u);
  EXPECT_EQ(newest(*other_)->head.slot, Slot(20));
}

TEST_F(Discovery, ARowOfResurrectedSlotsIsNotTrusted) {
  EXPECT_EQ(found_slot(), Slot(1));
  move_to(Slot(20), Slot(15));
  for (const std::uint64_t slot : {2U, 3U, 4U, 5U, 9U}) resurrect(Slot(slot));
  EXPECT_EQ(found_slot(), Slot(20));
}

TEST_F(Discovery, TheFloorMayRiseBeforeAnyRequest) {
  for (const bool cold : {false, true}) {
    std::size_t requests = 1;
    for (std::size_t number = 0; number < requests; ++number) {
      SCOPED_TRACE(testing::Message() << "before request " << number << ", cold: " << cold);
      append_slots(*other_, 9);
      if (cold) reader_.forget();
      const Slot before = newest(*other_)->head.slot;
      objects_.before_each([&](std::size_t now) {
        if (now == number) move_to(before + 6, before + 3);
      });
      const HeadPtr head = find().value();
      requests = objects_.requests().size();
      objects_.before_each({});
      if (number >= requests) break;
      const HeadPtr real = ManifestReader(*other_).at(head->head.slot, {}).value().value_or(head);
      EXPECT_EQ(head->crc, real->crc);
      EXPECT_GE(head->head.slot, before);
      EXPECT_LE(head->head.slot, before + 6);
      EXPECT_EQ(found_slot(), before + 6);
    }
    EXPECT_GE(requests, 5u);
  }
}

TEST_F(Discovery, AForkedChainIsCorruption) {
  append_slots(*other_, 2);
  EXPECT_EQ(found_slot(), Slot(3));
  append_slots(*other_, 1);
  Head forked = newest(*other_)->head;
  forked.previous_crc ^= 1;
  put_head(*other_, forked);
  const auto head = find();
  EXPECT_TRUE(head.is(ErrorKind::kCorruption));
  EXPECT_NE(head.status().message().find("m/00000000000000000004"), std::string_view::npos);
  EXPECT_EQ(reader_.cached()->head.slot, Slot(3));
}

TEST_F(Discovery, AHeadOfAnotherSlotIsCorruption) {
  append_slots(*other_, 2);
  const auto copy = memory_.get(manifest_key(Slot(3)), {}, {}).value();
  ASSERT_TRUE(objstore::put_bytes(memory_, manifest_key(Slot(4)), copy->bytes,
                                  objstore::PutCondition::absent(), {})
                  .is_ok());
  EXPECT_TRUE(find().is(ErrorKind::kCorruption));
}

TEST_F(Discovery, DamageOnTheWayIsReadAgain) {
  append_slots(*other_, 1);
  objects_.next(
      {.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kDamaged, .times = 2});
  EXPECT_EQ(found_slot(), Slot(2));
}

TEST_F(Discovery, AMissingFloorIsCorruption) {
  const std::string key(kFloorKey);
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  EXPECT_TRUE(find().is(ErrorKind::kCorruption));
}

TEST_F(Discovery, AMissingSlotAboveTheFloorIsCorruption) {
  const std::string key = manifest_key(Slot(1));
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  const auto head = find();
  EXPECT_TRUE(head.is(ErrorKind::kCorruption));
  EXPECT_NE(head.status().message().find("dense"), std::string_view::npos);
}

TEST_F(Discovery, ASlotThatVanishesAboveTheFloorIsCorruption) {
  for (const bool cold : {true, false}) {
    append_slots(*other_, 3);
    const std::string key = manifest_key(newest(*other_)->head.slot);
    const auto bytes = memory_.get(key, {}, {}).value()->bytes;
    if (cold) reader_.forget();
    objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                     ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
                   }});
    const auto head = find();
    EXPECT_TRUE(head.is(ErrorKind::kCorruption)) << "cold: " << cold;
    EXPECT_NE(head.status().message().find(key), std::string_view::npos);
    const auto put = objstore::put_bytes(memory_, key, bytes, objstore::PutCondition::absent(), {});
    EXPECT_EQ(put->outcome, objstore::PutOutcome::kApplied);
    EXPECT_EQ(find().value()->head.slot, newest(*other_)->head.slot);
  }
}

TEST_F(Discovery, ErrorsOfTheStoreArePassedOn) {
  append_slots(*other_, 5);
  for (const Answer answer : {Answer::kUnavailable, Answer::kForbidden}) {
    const ErrorKind kind =
        answer == Answer::kForbidden ? ErrorKind::kInvalid : ErrorKind::kUnavailable;
    std::size_t number = 0;
    for (Result<HeadPtr> head = Status::internal("not asked");; ++number) {
      reader_.forget();
      objects_.answer_request(number, answer);
      head = find();
      if (head.is_ok()) break;
      EXPECT_TRUE(head.is(kind)) << head.status().to_string();
      EXPECT_EQ(reader_.cached(), nullptr);
    }
    EXPECT_GE(number, 6u);
  }
}

TEST_F(Discovery, APassedDeadlineEndsIt) {
  EXPECT_TRUE(reader_.latest({.deadline = runtime_.now()}).is(ErrorKind::kUnavailable));
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(Discovery, AtReadsExactlyOneSlot) {
  move_to(Slot(9), Slot(4));
  EXPECT_EQ((*reader_.at(Slot(5), {}).value())->head.slot, Slot(5));
  EXPECT_EQ(reader_.at(Slot(10), {}).value(), std::nullopt);
  EXPECT_EQ(reader_.at(Slot(4), {}).value(), std::nullopt);
  resurrect(Slot(4));
  EXPECT_EQ(reader_.at(Slot(4), {}).value(), std::nullopt);
}

TEST_F(Discovery, AdoptNeverGoesBack) {
  const HeadPtr old = find().value();
  append_slots(*other_, 4);
  const HeadPtr head = find().value();
  reader_.adopt(old);
  EXPECT_EQ(reader_.cached(), head);
  reader_.forget();
  EXPECT_EQ(reader_.cached(), nullptr);
  reader_.adopt(old);
  EXPECT_EQ(reader_.cached(), old);
}

}  // namespace
}  // namespace batchloom::store
