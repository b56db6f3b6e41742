// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/long_records.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "batchloom/base/real_runtime.h"
#include "batchloom/base/sim_runtime.h"

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

/// Calls in a simulated world, while record 1 is being read and leaves room for small ones only.
class LongRecordTurns {
 public:
  LongRecordTurns(SimProcess& process, std::vector<std::uint32_t>& begun)
      : process_(process), records_(process, 2'500 * sizeof(sources::TokenId)), begun_(begun) {
    start(1, 2'000);
    wait_for_begun(1);
  }

  void start(std::uint32_t number, std::uint64_t ids, Duration patience = {}) {
    const Time deadline = patience == Duration() ? kNever : process_.now() + patience;
    const LongRecords::Wanted wanted{{model::SourceId(0), model::RecordIndex(number)}, ids};
    tasks_.push_back(process_.spawn("call", [this, number, wanted, deadline](std::stop_token) {
      const auto read = [&]() -> Result<ReadRecord> {
        begun_.push_back(number);
        const bool is_first = number == 1;
        EXPECT_TRUE(!is_first || go_on_->wait({}).is_ok());
        return record_of(wanted.ids);
      };
      const auto got = records_.get(wanted, read, {.deadline = deadline});
      EXPECT_EQ(got.is_ok(), deadline == kNever) << got.status().to_string();
    }));
  }
  void wait_for_waiting(std::size_t calls) {
    wait_for([&] { return records_.waiting() == calls; });
  }
  void wait_for_begun(std::size_t reads) {
    wait_for([&] { return begun_.size() == reads; });
  }
  void go_on() {
    go_on_->set();
    tasks_.clear();
  }

 private:
  void wait_for(const std::function<bool()>& test) {
    for (int look = 0; look < 1000 && !test(); ++look) {
      const Time next = process_.now() + std::chrono::milliseconds(1);
      EXPECT_TRUE(process_.sleep_until({.deadline = next}).is_ok());
    }
    EXPECT_TRUE(test());
  }

  SimProcess& process_;
  LongRecords records_;
  std::vector<std::uint32_t>& begun_;  // By record, in order.
  const std::shared_ptr<Event> go_on_ = process_.make_event();
  std::vector<std::unique_ptr<Task>> tasks_;
};

/// For many seeds.
void on_turns(
    const std::function<void(LongRecordTurns&, const std::vector<std::uint32_t>&)>& body) {
  for (std::uint64_t seed = 0; seed < 50 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimWorld world(seed);
    SimProcess& process = world.add_process("run");
    process.start("main", [&] {
      std::vector<std::uint32_t> begun;
      LongRecordTurns turns(process, begun);
      body(turns, begun);
    });
    const Status ended = world.run();
    ASSERT_TRUE(ended.is_ok()) << ended.to_string();
  }
}

TEST(LongRecordTurns, SmallOnesDoNotPassALargeOneThatWaits) {
  on_turns([](LongRecordTurns& turns, const std::vector<std::uint32_t>& begun) {
    turns.start(2, 2'000);
    turns.wait_for_waiting(1);
    turns.start(3, 100);
    turns.wait_for_waiting(2);
    EXPECT_EQ(begun, std::vector<std::uint32_t>{1});
    turns.go_on();
    EXPECT_EQ(begun.size(), 3U);
  });
}

TEST(LongRecordTurns, WhoWaitsForTheSameIsNotInTheWay) {
  on_turns([](LongRecordTurns& turns, const std::vector<std::uint32_t>& begun) {
    for (std::size_t calls = 1; calls <= 3; ++calls) {
      turns.start(2, 2'000);
      turns.wait_for_waiting(calls);
    }
    turns.start(3, 2'000);
    turns.wait_for_waiting(4);
    turns.go_on();
    // A fourth reading: of 2 again, where 3 drove it out before all had it.
    ASSERT_GE(begun.size(), 3U);
    EXPECT_EQ(std::vector(begun.begin(), begun.begin() + 3), (std::vector<std::uint32_t>{1, 2, 3}));
  });
}

TEST(LongRecordTurns, WhoGivesUpIsNotInTheWay) {
  on_turns([](LongRecordTurns& turns, const std::vector<std::uint32_t>& begun) {
    turns.start(2, 2'000, std::chrono::milliseconds(20));
    turns.start(3, 100);
    turns.wait_for_begun(2);
    turns.wait_for_waiting(0);
    EXPECT_EQ(begun, (std::vector<std::uint32_t>{1, 3}));
    turns.go_on();
  });
}

}  // namespace
}  // namespace batchloom::control
