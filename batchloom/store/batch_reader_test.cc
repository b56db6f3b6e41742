// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "batchloom/objstore/metered_store.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/piece_fetch.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;
using objstore::Operation;

/// A stream whose requests are counted, and an object in it.
class BatchReaderTest : public StoreTest {
 protected:
  BatchReaderTest() {
    metered_stream_ = Stream::open({runtime_, metered_, counters_}, {}, {}).value();
    put(small_batch());
  }

  /// The stream has a uuid of its own.
  void put(TestBatch batch) {
    batch_ = std::move(batch);
    batch_.options.identity.stream = stream_->uuid();
    built_ = batch_.build();
    entry_ = entry_of(batch_.options.identity, built_);
    put_object(memory_, entry_, object_of(built_));
    gets_before_ = counted("objstore_get_calls");
    bytes_before_ = counted("objstore_get_bytes");
  }

  std::uint64_t gets() { return counted("objstore_get_calls") - gets_before_; }
  std::uint64_t got_bytes() { return counted("objstore_get_bytes") - bytes_before_; }
  std::string key() const { return data_key(entry_.object()); }
  BatchContext context() const {
    BatchContext context = context_of(batch_.options.identity, built_);
    context.key = "d/key";
    return context;
  }

  void expect_runs(const Result<std::vector<store::Run>>& runs, HdpRank rank) const {
    ASSERT_TRUE(runs.is_ok()) << runs.status().to_string();
    ASSERT_EQ(runs->size(), built_.steps);
    for (std::uint32_t position = 0; position < built_.steps; ++position) {
      const Status same = compare_run((*runs)[position], batch_, position, rank);
      EXPECT_TRUE(same.is_ok()) << same.to_string();
    }
  }
  template <class T>
  void expect_error(const Result<T>& result, ErrorKind kind, std::string_view reason) const {
    ASSERT_TRUE(result.is(kind)) << reason << ": " << result.status().to_string();
    EXPECT_NE(result.status().message().find(reason), std::string_view::npos)
        << result.status().message();
    EXPECT_NE(result.status().message().find(key()), std::string_view::npos)
        << result.status().message();
  }

  objstore::MeteredStore metered_{objects_, counters_};
  std::unique_ptr<Stream> metered_stream_;
  TestBatch batch_;
  BuiltBatch built_;
  Entry entry_;
  std::uint64_t gets_before_ = 0;
  std::uint64_t bytes_before_ = 0;
};

TEST_F(BatchReaderTest, ARankReadsAllStepsWithOneRequestForNothingElse) {
  BatchReader reader(*metered_stream_);
  const auto rows = rows_of(context(), object_of(built_));
  for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
    put(small_batch());
    expect_runs(reader.read_runs(entry_, rank, {}), rank);
    EXPECT_EQ(gets(), 1U);
    std::uint64_t size = 0;
    for (const RunRow& row : rows[rank.value]) size += row.size_bytes;
    EXPECT_EQ(got_bytes(), size);
  }
}

TEST_F(BatchReaderTest, OneStepsRunIsReadAlone) {
  BatchReader reader(*metered_stream_);
  const auto run = reader.read_run(entry_, 1, HdpRank(1), {});
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  EXPECT_TRUE(compare_run(*run, batch_, 1, HdpRank(1)).is_ok());
  EXPECT_EQ(gets(), 1U);
  EXPECT_EQ(got_bytes(), rows_of(context(), object_of(built_))[1][1].size_bytes);
}

TEST_F(BatchReaderTest, RunsOfOneRequestShareTheirBytes) {
  BatchReader reader(*metered_stream_);
  const std::vector<store::Run> runs = reader.read_runs(entry_, HdpRank(0), {}).value();
  EXPECT_EQ(runs[0].bytes, runs[1].bytes);
}

TEST_F(BatchReaderTest, RowsThatTheEntryLacksAreFetchedOnce) {
  entry_.run_table.clear();
  BatchReader reader(*metered_stream_);
  expect_runs(reader.read_runs(entry_, HdpRank(1), {}), HdpRank(1));
  EXPECT_EQ(gets(), 2U);
  expect_runs(reader.read_runs(entry_, HdpRank(1), {}), HdpRank(1));
  EXPECT_TRUE(reader.read_run(entry_, 0, HdpRank(1), {}).is_ok());
  EXPECT_EQ(gets(), 4U);
  expect_runs(reader.read_runs(entry_, HdpRank(0), {}), HdpRank(0));
  EXPECT_EQ(gets(), 6U) << "another rank's rows are its own";
}

TEST_F(BatchReaderTest, RowsOfAnotherObjectAreNotTakenFromTheCache) {
  entry_.run_table.clear();
  BatchReader reader(*metered_stream_);
  ASSERT_TRUE(reader.read_runs(entry_, HdpRank(0), {}).is_ok());
  // A name that differs in nothing but the sequence number, nonce included.
  TestBatch other = random_batch({.seed = 5, .steps = 2, .ranks = 2, .samples = 6});
  other.options.identity.seq = Seq(8);
  put(std::move(other));
  entry_.run_table.clear();
  expect_runs(reader.read_runs(entry_, HdpRank(0), {}), HdpRank(0));
}

TEST_F(BatchReaderTest, TheCacheIsBoundedAndKeepsWhatIsUsed) {
  entry_.run_table.clear();
  BatchReader reader(*metered_stream_, 2 * 320);  // Two ranks' rows.
  const auto requests_for = [&](std::uint32_t rank) {
    const std::uint64_t before = gets();
    EXPECT_TRUE(reader.read_run(entry_, 0, HdpRank(rank), {}).is_ok());
    return gets() - before;
  };
  put(random_batch({.seed = 3, .steps = 1, .ranks = 5, .samples = 9}));
  entry_.run_table.clear();
  EXPECT_EQ(requests_for(0), 2U);
  EXPECT_EQ(requests_for(1), 2U);
  EXPECT_EQ(requests_for(0), 1U);
  EXPECT_EQ(requests_for(2), 2U);  // Rank 1's rows go.
  EXPECT_EQ(requests_for(0), 1U);
  EXPECT_EQ(requests_for(1), 2U);
}

TEST_F(BatchReaderTest, WhatTheEntryLacksIsInvalid) {
  BatchReader reader(*metered_stream_);
  expect_error(reader.read_runs(entry_, HdpRank(2), {}), ErrorKind::kInvalid,
               "has runs of 2 HDP ranks, and none of rank 2");
  expect_error(reader.read_run(entry_, 2, HdpRank(0), {}), ErrorKind::kInvalid,
               "has 2 steps, and none at position 2");
  EXPECT_EQ(gets(), 0U);
}

TEST_F(BatchReaderTest, AMissingObjectIsLookedForTwice) {
  const std::string gone = key();
  ASSERT_TRUE(memory_.remove(std::span(&gone, 1), {}).is_ok());
  BatchReader reader(*metered_stream_);
  expect_error(reader.read_runs(entry_, HdpRank(0), {}), ErrorKind::kCorruption, "missing");
  EXPECT_EQ(gets(), 2U);
  expect_error(reader.read_index(entry_, {}), ErrorKind::kCorruption, "missing");
}

TEST_F(BatchReaderTest, DamageOnTheWayIsReadAgain) {
  BatchReader reader(*metered_stream_);
  objects_.next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged});
  expect_runs(reader.read_runs(entry_, HdpRank(0), {}), HdpRank(0));
  EXPECT_EQ(gets(), 2U);
  EXPECT_EQ(counted("store_batch_rereads"), 1U);
}

TEST_F(BatchReaderTest, DamageThatStaysIsCorruption) {
  BatchReader reader(*metered_stream_);
  objects_.next(
      {.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged, .times = 2});
  const auto runs = reader.read_runs(entry_, HdpRank(0), {});
  expect_error(runs, ErrorKind::kCorruption, ": at byte ");
  EXPECT_EQ(gets(), 2U);
}

TEST_F(BatchReaderTest, OtherErrorsAreNotRepeated) {
  BatchReader reader(*metered_stream_);
  objects_.next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kUnavailable});
  EXPECT_TRUE(reader.read_runs(entry_, HdpRank(0), {}).is(ErrorKind::kUnavailable));
  objects_.next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kForbidden});
  EXPECT_TRUE(reader.read_runs(entry_, HdpRank(0), {}).is(ErrorKind::kInvalid));
  EXPECT_EQ(gets(), 2U);
}

TEST_F(BatchReaderTest, AnObjectOfAnotherSizeIsCorruption) {
  Bytes object = object_of(built_);
  object.push_back(std::byte{0});
  put_object(memory_, entry_, object);
  BatchReader reader(*metered_stream_);
  expect_error(reader.read_runs(entry_, HdpRank(0), {}), ErrorKind::kCorruption,
               "at byte 6040: too long: it has 6041 bytes, its entry says 6040");
  object.resize(10);  // Before the run begins: the store refuses the range.
  put_object(memory_, entry_, object);
  expect_error(reader.read_runs(entry_, HdpRank(0), {}), ErrorKind::kCorruption,
               "at byte 10: truncated: it has 10 bytes, its entry says 6040");
  expect_error(reader.read_index(entry_, {}), ErrorKind::kCorruption,
               "at byte 10: truncated: it has 10 bytes, its entry says 6040");
}

TEST_F(BatchReaderTest, EntriesThatNoObjectFits) {
  BatchReader reader(*metered_stream_);
  Entry entry = entry_;
  entry.run_table.pop_back();
  expect_error(reader.read_runs(entry, HdpRank(0), {}), ErrorKind::kCorruption,
               "carries a run table of 71 bytes; 2 ranks and 2 steps make 72");
  entry = entry_;
  entry.run_table[40] ^= std::byte{1};
  EXPECT_TRUE(reader.read_runs(entry, HdpRank(0), {}).is_ok());
  expect_error(reader.read_runs(entry, HdpRank(1), {}), ErrorKind::kCorruption,
               " (in the copy that its entry carries)");
  entry = entry_;
  entry.ranks = UINT32_MAX;
  expect_error(reader.read_runs(entry, HdpRank(0), {}), ErrorKind::kCorruption,
               "no batch object is like that");
}

TEST_F(BatchReaderTest, TheIndexTakesTwoRequests) {
  BatchReader reader(*metered_stream_);
  const auto index = reader.read_index(entry_, {});
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  EXPECT_TRUE(compare_index(**index, batch_).is_ok());
  EXPECT_EQ(gets(), 2U);
}

TEST_F(BatchReaderTest, ALargeIndexTakesThree) {
  TestBatch batch = small_batch();
  batch.options.origin.cost_table = Bytes(100'000, std::byte{5});
  put(std::move(batch));
  BatchReader reader(*metered_stream_);
  const auto index = reader.read_index(entry_, {});
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  EXPECT_TRUE(compare_index(**index, batch_).is_ok());
  EXPECT_EQ(gets(), 3U);
}

TEST_F(BatchReaderTest, EachPartOfTheIndexIsReadAgain) {
  TestBatch batch = small_batch();
  batch.options.origin.cost_table = Bytes(50'000);  // The middle of the object's end is the index.
  put(std::move(batch));
  for (const std::size_t request : {0U, 1U}) {
    BatchReader reader(*metered_stream_);
    if (request == 1) objects_.next({.operation = Operation::kGet, .prefix = "d/"});
    objects_.next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged});
    EXPECT_TRUE(reader.read_index(entry_, {}).is_ok());
    EXPECT_TRUE(objects_.script_is_done());
  }
  EXPECT_EQ(counted("store_batch_rereads"), 2U);
}

/// Each of the two is whole, but they are not of one object.
TEST_F(BatchReaderTest, WhatStandsBeforeTheRunsFitsToTheIndex) {
  BatchReader reader(*metered_stream_);
  BatchContext context = this->context();
  Bytes object = object_of(built_);
  const Bytes header = encode_batch_header(
      context, {.token_width = TokenWidth::k32, .payload_bytes = built_.payload_bytes});
  std::ranges::copy(header, object.begin());
  put_object(memory_, entry_, object);
  expect_error(reader.read_index(entry_, {}), ErrorKind::kCorruption, "speak of ids of 4 bytes");

  object = object_of(built_);
  std::vector<RunRow> rows = rows_of(context, object).back();
  rows.back().size_bytes -= 64;
  const Bytes group = encode_rank_rows(context.identity, HdpRank(1), rows);
  std::ranges::copy(group, object.begin() + static_cast<std::ptrdiff_t>(
                                                rank_rows_offset(HdpRank(1), built_.steps)));
  put_object(memory_, entry_, object);
  expect_error(reader.read_index(entry_, {}), ErrorKind::kCorruption,
               "runs that end at byte " + std::to_string(rows.back().slice().end()));
}

TEST_F(BatchReaderTest, PiecesAreReadInTheOrderAsked) {
  BatchReader reader(*metered_stream_);
  const auto index = reader.read_index(entry_, {}).value();
  for (std::uint32_t position = 0; position < built_.steps; ++position) {
    const TestStep& step = batch_.steps[position];
    std::vector<std::uint32_t> numbers(step.plan.pieces.size());
    std::iota(numbers.rbegin(), numbers.rend(), 0U);
    numbers.push_back(0);  // One of them twice.
    const auto fetched = reader.read_pieces(entry_, *index, position, numbers, {});
    ASSERT_TRUE(fetched.is_ok()) << fetched.status().to_string();
    ASSERT_EQ(fetched->pieces.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Status same =
          compare_piece(fetched->pieces[i], step, batch_.options.token_width, numbers[i]);
      EXPECT_TRUE(same.is_ok()) << same.to_string();
    }
    EXPECT_EQ(fetched->buffers.size(), 1U) << "a small object has no gaps";
  }
  EXPECT_EQ(gets(), 4U);
}

TEST_F(BatchReaderTest, NoPiecesTakeNoRequest) {
  BatchReader reader(*metered_stream_);
  const auto index = reader.read_index(entry_, {}).value();
  const auto fetched = reader.read_pieces(entry_, *index, 0, {}, {});
  ASSERT_TRUE(fetched.is_ok());
  EXPECT_TRUE(fetched->pieces.empty());
  EXPECT_EQ(gets(), 2U);
}

TEST_F(BatchReaderTest, PiecesThatTheIndexLacksAreInvalid) {
  BatchReader reader(*metered_stream_);
  const auto index = reader.read_index(entry_, {}).value();
  const auto count = static_cast<std::uint32_t>(batch_.steps[0].plan.pieces.size());
  expect_error(reader.read_pieces(entry_, *index, 0, std::array{0U, count}, {}),
               ErrorKind::kInvalid, "and none of number " + std::to_string(count));
  expect_error(reader.read_pieces(entry_, *index, 2, {}, {}), ErrorKind::kInvalid,
               "none at position 2");
  Entry other = entry_;
  other.seq = Seq(8);
  const auto refused = reader.read_pieces(other, *index, 0, {}, {});
  ASSERT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_NE(refused.status().message().find("read with the index of batch 7 of p"),
            std::string_view::npos);
}

/// Five samples of 100,000 bytes: pieces 0 and 2 and their look-ahead lie far apart.
class DistantPiecesTest : public BatchReaderTest {
 protected:
  DistantPiecesTest() {
    TestBatch batch;
    batch.options = batch_.options;
    batch.steps.push_back(
        make_step(packed_plan({.samples = 5, .tokens = 50'000}), TokenWidth::k16, 1));
    // Without tensors and masks, so that it is plain what lies where.
    for (SampleContent& sample : batch.steps[0].samples) {
      sample.next_token.reset();
      sample.labels.reset();
      sample.tensors.clear();
    }
    put(std::move(batch));
    index_ = reader_.read_index(entry_, {}).value();
    gets_before_ = counted("objstore_get_calls");
    bytes_before_ = counted("objstore_get_bytes");
  }

  Result<FetchedPieces> read(std::vector<std::uint32_t> pieces) {
    return reader_.read_pieces(entry_, *index_, 0, pieces, {});
  }
  void expect_pieces(const Result<FetchedPieces>& fetched,
                     const std::vector<std::uint32_t>& pieces) const {
    ASSERT_TRUE(fetched.is_ok()) << fetched.status().to_string();
    ASSERT_EQ(fetched->pieces.size(), pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_TRUE(
          compare_piece(fetched->pieces[i], batch_.steps[0], TokenWidth::k16, pieces[i]).is_ok());
    }
  }

  BatchReader reader_{*metered_stream_};
  std::shared_ptr<const BatchIndex> index_;
};

TEST_F(DistantPiecesTest, WhatLiesBetweenIsNotRead) {
  expect_pieces(read({0, 2}), {0, 2});
  EXPECT_EQ(gets(), 3U);
  EXPECT_LT(got_bytes(), 200'200U);
}

TEST_F(DistantPiecesTest, NeighboursAreReadTogether) {
  expect_pieces(read({3, 2}), {3, 2});
  EXPECT_EQ(gets(), 2U);
}

TEST_F(DistantPiecesTest, OnlyADamagedPiecesRangesAreReadAgain) {
  objects_.next({.operation = Operation::kGet, .prefix = "d/"});
  objects_.next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged});
  expect_pieces(read({0, 2}), {0, 2});
  EXPECT_EQ(gets(), 5U) << "all three, then tokens and look-ahead of piece 2";
  EXPECT_EQ(counted("store_batch_rereads"), 2U);
}

TEST_F(DistantPiecesTest, DamageThatStaysIsCorruption) {
  Bytes object = object_of(built_);
  object[index_->pieces[0][2].slices.tokens.offset_bytes + 7] ^= std::byte{1};
  put_object(memory_, entry_, object);
  expect_error(read({0, 2}), ErrorKind::kCorruption, "damaged tokens [0, 50000) of sample 0:0:2:0");
  expect_pieces(read({0, 1, 4}), {0, 1, 4});
}

TEST(JoinSlices, GapsUpToTheLimitAreBridged) {
  using Slices = std::vector<Slice>;
  EXPECT_EQ(join_slices({}, 100), Slices{});
  EXPECT_EQ(join_slices({{128, 0}}, 100), Slices{});
  EXPECT_EQ(join_slices({{64, 10}, {174, 10}}, 100), (Slices{{64, 120}}));
  EXPECT_EQ(join_slices({{64, 10}, {175, 10}}, 100), (Slices{{64, 10}, {128, 57}}));
  EXPECT_EQ(join_slices({{192, 8}, {64, 8}}, 100), (Slices{{64, 8}, {192, 8}}));
  EXPECT_EQ(join_slices({{64, 100}, {70, 10}}, 100), (Slices{{64, 100}})) << "one inside another";
  EXPECT_EQ(join_slices({{70, 10}}, 100), (Slices{{64, 16}})) << "begins aligned";
}

}  // namespace
}  // namespace batchloom::store
