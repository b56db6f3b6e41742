// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/run.h"

#include <gtest/gtest.h>

#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/frame.h"
#include "batchloom/store/run_codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;

/// The runs of a small object, one by one.
constexpr std::string_view kPlace = "d/key: at byte ";

class RunTest : public testing::Test {
 protected:
  RunTest() : built_(batch_.build()), object_(object_of(built_)) {
    context_ = context_of(test_identity(), built_);
    rows_ = store::rows_of(context_, object_);
  }

  ExpectedRun expected(std::uint32_t position, HdpRank rank) const {
    return {.key = "d/key",
            .identity = test_identity(),
            .position = position,
            .rank = rank,
            .row = rows_[rank.value][position]};
  }
  Bytes bytes_of(const RunRow& row) const {
    const auto begin = object_.begin() + static_cast<std::ptrdiff_t>(row.offset_bytes);
    return {begin, begin + row.size_bytes};
  }
  static Result<store::Run> decode(const ExpectedRun& expected, Bytes bytes) {
    return decode_run(expected, std::make_shared<const Bytes>(std::move(bytes)), 0);
  }
  static void expect_error(const Result<store::Run>& run, std::string_view reason,
                           ErrorKind kind = ErrorKind::kCorruption) {
    ASSERT_FALSE(run.is_ok()) << reason;
    EXPECT_TRUE(run.is(kind)) << reason << ": " << run.status().to_string();
    EXPECT_NE(run.status().message().find(reason), std::string_view::npos)
        << run.status().message();
    EXPECT_TRUE(run.status().message().starts_with(kPlace)) << run.status().message();
  }
  /// Counted from the object's begin.
  static std::uint64_t byte_named_by(const Status& error) {
    return std::stoull(std::string(error.message().substr(kPlace.size())));
  }
  template <class Visit>
  void for_each_run(Visit visit) const {
    for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
      for (std::uint32_t position = 0; position < built_.steps; ++position) {
        visit(expected(position, rank));
      }
    }
  }

  TestBatch batch_ = small_batch();
  BuiltBatch built_;
  Bytes object_;
  BatchContext context_;
  std::vector<std::vector<RunRow>> rows_;
};

TEST_F(RunTest, TheFixtureHasAllThereIs) {
  bool ring = false;
  bool pack = false;
  bool filler = false;
  bool mask = false;
  bool tensor = false;
  bool end_of_record = false;
  for_each_run([&](const ExpectedRun& expected) {
    const store::Run run = decode(expected, bytes_of(expected.row)).value();
    for (const RunMicroBatch& micro_batch : run.micro_batches) {
      ring |= micro_batch.ring.size() > 1 && !micro_batch.pieces.empty();
      pack |= micro_batch.ring.size() == 1 && micro_batch.pieces.size() > 1;
      filler |= micro_batch.pieces.empty();
      for (const RunPiece& piece : micro_batch.pieces) {
        mask |= !piece.labels.empty();
        tensor |= !piece.tensors.empty();
        end_of_record |= !piece.has_next_token;
      }
    }
  });
  EXPECT_TRUE(ring);
  EXPECT_TRUE(pack);
  EXPECT_TRUE(filler);
  EXPECT_TRUE(mask);
  EXPECT_TRUE(tensor);
  EXPECT_TRUE(end_of_record);
}

TEST_F(RunTest, ItIsFoundAnywhereInItsBuffer) {
  const auto bytes = std::make_shared<const Bytes>(object_);
  for_each_run([&](const ExpectedRun& expected) {
    const auto run = decode_run(expected, bytes, expected.row.offset_bytes);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    const Status same = compare_run(*run, batch_, expected.position, expected.rank);
    EXPECT_TRUE(same.is_ok()) << same.to_string();
    EXPECT_EQ(run->bytes, bytes);
  });
}

TEST_F(RunTest, AnyByteChangedIsFound) {
  for_each_run([&](const ExpectedRun& expected) {
    Bytes bytes = bytes_of(expected.row);
    for (std::size_t place = 0; place < bytes.size(); ++place) {
      for (const std::byte change : {std::byte{1}, std::byte{0x80}}) {
        bytes[place] ^= change;
        const bool version = place / 2 == 3;
        const auto run = decode(expected, bytes);
        expect_error(run, ": at byte ", version ? ErrorKind::kInvalid : ErrorKind::kCorruption);
        const std::uint64_t named = byte_named_by(run.status());
        EXPECT_GE(named, expected.row.offset_bytes) << run.status().to_string();
        EXPECT_LT(named, expected.row.slice().end()) << run.status().to_string();
        bytes[place] ^= change;
      }
    }
  });
}

TEST_F(RunTest, TruncatedAnywhere) {
  const ExpectedRun run = expected(0, HdpRank(1));
  const Bytes bytes = bytes_of(run.row);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    expect_error(decode(run, Bytes(bytes.begin(), bytes.begin() + static_cast<long>(size))),
                 "truncated: the run of rank 1, step 0");
    // A row that means so few bytes: what is left must not be taken for a run.
    ExpectedRun cut = run;
    cut.row.size_bytes = static_cast<std::uint32_t>(size);
    expect_error(decode(cut, bytes), ": at byte ");
  }
  expect_error(decode_run(run, std::make_shared<const Bytes>(bytes), bytes.size() + 1),
               "0 are there");
}

TEST_F(RunTest, LongerThanItsColumns) {
  ExpectedRun run = expected(0, HdpRank(0));
  Bytes bytes = bytes_of(run.row);
  bytes.resize(bytes.size() + 64);
  run.row.size_bytes += 64;
  expect_error(decode(run, bytes), "its columns end at byte ");
}

TEST_F(RunTest, AnotherRunIsNotTaken) {
  for_each_run([&](const ExpectedRun& expected) {
    for_each_run([&](const ExpectedRun& other) {
      if (other.rank == expected.rank && other.position == expected.position) return;
      // Under a row that was swapped with it, and under one that names its header.
      ExpectedRun swapped = expected;
      swapped.row = other.row;
      expect_error(decode(swapped, bytes_of(other.row)),
                   "is the run of rank " + std::to_string(other.rank.value) + ", step " +
                       std::to_string(other.position));
      swapped.row.header_crc = expected.row.header_crc;
      expect_error(decode(swapped, bytes_of(other.row)), "another run: its header has the CRC-32C");
    });
  });
}

TEST_F(RunTest, AnotherObjectsRunIsNotTaken) {
  const ExpectedRun original = expected(1, HdpRank(0));
  const Bytes bytes = bytes_of(original.row);
  ExpectedRun run = original;
  run.identity.stream = test_uuid(2);
  expect_error(decode(run, bytes), "belongs to stream " + test_uuid(1).to_string());
  run = original;
  run.identity.seq = Seq(8);
  expect_error(decode(run, bytes), "is of batch 7 of p in term 3, expected batch 8 of p in term 3");
  run = original;
  run.identity.producer = "q";
  expect_error(decode(run, bytes), "expected batch 7 of q");
  run = original;
  run.identity.term = Term(4);
  expect_error(decode(run, bytes), "expected batch 7 of p in term 4");
}

/// Columns of a header that a writer who is not ours made up.
class ForeignRunTest : public testing::Test {
 protected:
  /// Rank 0, one micro-batch with a piece of 4 tokens of 2 bytes and no look-ahead.
  ForeignRunTest() {
    header_.identity = test_identity();
    header_.token_width = TokenWidth::k16;
    header_.micro_batches = {{.task = 0, .offload = {}, .members = 1, .pieces = 1}};
    header_.members = {HdpRank(0)};
    header_.pieces = {
        {.sample = {}, .sample_tokens = 4, .lo = 0, .hi = 4, .facts = {.all_labels = true}}};
    header_.events = {{0, model::Phase::kForward}, {0, model::Phase::kBackward}};
    tokens_.resize(8);
    next_token_.resize(2);
  }

  Result<store::Run> decode() {
    std::uint32_t crc = crc32c(next_token_, crc32c(tokens_));
    header_.pieces[0].facts.crc = crc32c(labels_, crc);
    header_.pieces[0].facts.label_intervals = static_cast<std::uint32_t>(labels_.size() / 8);
    const Encoded header = encode_run_header(header_);
    Bytes run = header.bytes;
    for (const Bytes* column : {&tokens_, &next_token_, &labels_}) {
      run.resize(column_aligned(run.size()));
      run.insert(run.end(), column->begin(), column->end());
    }
    run.resize(column_aligned(run.size()));
    const ExpectedRun expected{.key = "d/key",
                               .identity = test_identity(),
                               .position = 0,
                               .rank = HdpRank(0),
                               .row = {.offset_bytes = 128,
                                       .size_bytes = static_cast<std::uint32_t>(run.size()),
                                       .header_crc = header.crc}};
    return decode_run(expected, std::make_shared<const Bytes>(std::move(run)), 0);
  }
  void set_labels(const std::vector<LabelInterval>& labels) {
    header_.pieces[0].facts.all_labels = false;
    labels_.resize(8 * labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      store_le(labels[i].begin, &labels_[8 * i]);
      store_le(labels[i].end, &labels_[8 * i + 4]);
    }
  }
  void expect_corruption(std::string_view reason) {
    const auto run = decode();
    EXPECT_TRUE(run.is(ErrorKind::kCorruption)) << reason;
    EXPECT_NE(run.status().message().find(reason), std::string_view::npos)
        << run.status().message();
  }

  RunHeader header_;
  Bytes tokens_, next_token_, labels_;
};

TEST_F(ForeignRunTest, IsARun) {
  EXPECT_TRUE(decode().is_ok()) << decode().status().to_string();
  set_labels({{0, 1}, {2, 3}});
  const auto run = decode();
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  EXPECT_EQ(run->micro_batches[0].pieces[0].labels, (std::vector<LabelInterval>{{0, 1}, {2, 3}}));
}

TEST_F(ForeignRunTest, LabelsAscendApartAndExist) {
  set_labels({{0, 1}, {1, 3}});
  expect_corruption("count labels [1, 3) of 3, out of order");
  set_labels({{2, 3}, {0, 1}});
  expect_corruption("count labels [0, 1) of 3, out of order");
  set_labels({{2, 2}});
  expect_corruption("count labels [2, 2)");
  set_labels({{2, 4}});
  expect_corruption("count labels [2, 4) of 3");
}

TEST_F(ForeignRunTest, ALookAheadThatIsNoneIsZero) {
  next_token_[1] = std::byte{1};
  expect_corruption("are followed by no token, and by one that is not 0");
  header_.pieces[0].facts.has_next_token = true;
  EXPECT_TRUE(decode().is_ok());
}

TEST_F(ForeignRunTest, CountsThatAreLargerThanTheRun) {
  header_.pieces[0].sample_tokens = UINT32_MAX;
  header_.pieces[0].hi = UINT32_MAX;
  expect_corruption("its columns end beyond byte ");
}

}  // namespace
}  // namespace batchloom::store
