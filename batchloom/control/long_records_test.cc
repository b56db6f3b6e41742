// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/long_records.h"

#include <gtest/gtest.h>

#include <atomic>

#include "batchloom/base/real_runtime.h"

namespace batchloom::control {
namespace {

ReadRecord record_of(std::size_t ids) {
  ReadRecord read;
  read.record.ids.assign(ids, 7);
  return read;
}

class LongRecordsTest : public testing::Test {
 protected:
  ReadRecordPtr get(LongRecords& records, std::uint32_t number, std::size_t ids = 100) {
    const auto read = [&]() -> Result<ReadRecord> {
      ++reads_;
      return record_of(ids);
    };
    return records.get(wanted(number, ids), read, {}).value();
  }

  static LongRecords::Wanted wanted(std::uint32_t number, std::uint64_t ids) {
    return {{model::SourceId(0), model::RecordIndex(number)}, ids};
  }
  /// Reads a record when it is told to; waits until it has begun.
  std::unique_ptr<Task> spawn_reader(LongRecords& records, const LongRecords::Wanted& wanted,
                                     Event& go_on) {
    const std::shared_ptr<Event> begun = runtime_->make_event();
    auto reader = runtime_->spawn("reader", [&records, wanted, &go_on, begun](std::stop_token) {
      const auto slow = [&]() -> Result<ReadRecord> {
        begun->set();
        EXPECT_TRUE(go_on.wait({}).is_ok());
        return record_of(wanted.ids);
      };
      EXPECT_TRUE(records.get(wanted, slow, {}).is_ok());
    });
    EXPECT_TRUE(begun->wait({}).is_ok());
    return reader;
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  std::atomic<int> reads_ = 0;
};

TEST_F(LongRecordsTest, ARecordIsReadOnceHoweverOftenItIsAskedFor) {
  LongRecords records(*runtime_, 1 << 20);
  for (int part = 0; part < 400; ++part) EXPECT_EQ(get(records, 3)->record.ids.size(), 100U);
  EXPECT_EQ(reads_, 1);
}

TEST_F(LongRecordsTest, SourcesThatTakeTurnsDoNotDriveEachOthersOut) {
  LongRecords records(*runtime_, 1 << 20);
  for (int part = 0; part < 100; ++part) {
    for (std::uint32_t record = 0; record < 10; ++record) get(records, record);
  }
  EXPECT_EQ(reads_, 10);
}

TEST_F(LongRecordsTest, ThoseUsedLastAreKeptUpToTheBound) {
  LongRecords records(*runtime_, 2'500 * sizeof(sources::TokenId));
  const ReadRecordPtr first = get(records, 1, 1'000);
  get(records, 2, 1'000);
  get(records, 1, 1'000);
  get(records, 3, 1'000);  // For which the second goes.
  EXPECT_EQ(reads_, 3);
  get(records, 1, 1'000);
  EXPECT_EQ(reads_, 3);
  get(records, 2, 1'000);
  EXPECT_EQ(reads_, 4);
  EXPECT_EQ(first->record.ids.size(), 1'000U);  // Whoever has it keeps it.
}

TEST_F(LongRecordsTest, TheNewestIsKeptHoweverLarge) {
  LongRecords records(*runtime_, 10);
  for (int part = 0; part < 5; ++part) get(records, 1, 1'000);
  EXPECT_EQ(reads_, 1);
  const std::weak_ptr<const ReadRecord> first = get(records, 1, 1'000);
  EXPECT_FALSE(first.expired());
  get(records, 2, 1'000);
  EXPECT_TRUE(first.expired());
}

TEST_F(LongRecordsTest, AfterAnErrorTheNextOneReadsAgain) {
  LongRecords records(*runtime_, 1 << 20);
  const auto fails = [] { return Result<ReadRecord>(Status::unavailable("the disk is away")); };
  EXPECT_TRUE(records.get(wanted(1, 100), fails, {}).is(ErrorKind::kUnavailable));
  EXPECT_EQ(records.bytes(), 0U);
  EXPECT_NE(get(records, 1), nullptr);
  EXPECT_EQ(reads_, 1);
}

TEST_F(LongRecordsTest, WhoAsksWhileItIsReadWaitsForThat) {
  LongRecords records(*runtime_, 1 << 20);
  const auto go_on = runtime_->make_event();
  const LongRecords::Wanted name = wanted(1, 5);
  const auto reader = spawn_reader(records, name, *go_on);
  // Not for longer than it may.
  const auto never = [] { return Result<ReadRecord>(Status::internal("read twice")); };
  const CallOptions no_time{.deadline = runtime_->now()};
  EXPECT_TRUE(records.get(name, never, no_time).is(ErrorKind::kUnavailable));
  const auto waiter = runtime_->spawn("waiter", [&](const std::stop_token&) {
    const auto got = records.get(name, never, {});
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ((*got)->record.ids.size(), 5U);
  });
  go_on->set();
  waiter->join();
  reader->join();
}

TEST_F(LongRecordsTest, WhatIsBeingReadCountsFromTheBegin) {
  LongRecords records(*runtime_, 3'500 * sizeof(sources::TokenId));
  const std::weak_ptr<const ReadRecord> old = get(records, 1, 1'000);
  EXPECT_FALSE(old.expired());
  const auto go_on = runtime_->make_event();
  const auto reader = spawn_reader(records, wanted(2, 3'000), *go_on);
  EXPECT_TRUE(old.expired()) << "it went for the one that is being read";
  EXPECT_GE(records.bytes(), 3'000 * sizeof(sources::TokenId));
  go_on->set();
  reader->join();
  EXPECT_LE(records.bytes(), 3'500 * sizeof(sources::TokenId));
}

TEST_F(LongRecordsTest, ReadersThatWouldExceedTheBoundTogetherTakeTurns) {
  LongRecords records(*runtime_, 2'500 * sizeof(sources::TokenId));
  const auto go_on = runtime_->make_event();
  const auto reader = spawn_reader(records, wanted(1, 2'000), *go_on);
  const auto never = [] { return Result<ReadRecord>(Status::internal("beyond the bound")); };
  const CallOptions no_time{.deadline = runtime_->now() + std::chrono::milliseconds(1)};
  EXPECT_TRUE(records.get(wanted(2, 2'000), never, no_time).is(ErrorKind::kUnavailable));
  EXPECT_NE(get(records, 3, 100), nullptr) << "this one has room";
  const auto second = runtime_->spawn(
      "second", [&](const std::stop_token&) { EXPECT_NE(get(records, 2, 2'000), nullptr); });
  go_on->set();
  second->join();
  reader->join();
  EXPECT_LE(records.bytes(), 2'500 * sizeof(sources::TokenId));
}

}  // namespace
}  // namespace batchloom::control
