// SPDX-License-Identifier: Apache-2.0
// Every byte of a small object is changed, and every end cut off: whoever reads that part says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "batchloom/store/batch_reader.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;

class BatchDamage : public StoreTest {
 protected:
  BatchDamage() {
    batch_.options.identity.stream = other_->uuid();
    built_ = batch_.build();
    object_ = object_of(built_);
    entry_ = entry_of(batch_.options.identity, built_);
    entry_.run_table.clear();  // Readers of runs look into the object's.
    key_ = data_key(entry_.object());
    rows_ = store::rows_of(context_of(batch_.options.identity, built_), object_);
  }

  Status read_index() {
    BatchReader reader(*other_);
    return reader.read_index(entry_, {}).status();
  }
  Status read_runs(HdpRank rank) {
    BatchReader reader(*other_);
    return reader.read_runs(entry_, rank, {}).status();
  }
  std::uint64_t runs_begin() const { return first_run_offset(built_.ranks, built_.steps); }
  std::uint64_t runs_end() const { return rows_.back().back().slice().end(); }
  bool owns(HdpRank rank, std::uint64_t place) const {
    const std::uint64_t table = rank_rows_offset(rank, built_.steps);
    const auto& own = rows_[rank.value];
    return (place >= table && place < table + rank_rows_bytes(built_.steps)) ||
           (place >= own.front().offset_bytes && place < own.back().slice().end());
  }
  void expect_complaint(const Status& status, const std::string& what) const {
    // Two bytes of each frame hold its version, and another one is from the future.
    EXPECT_TRUE(status.is(ErrorKind::kCorruption) || status.is(ErrorKind::kInvalid))
        << what << ": " << status.to_string();
    EXPECT_NE(status.message().find(key_), std::string_view::npos) << what << status.message();
    EXPECT_NE(status.message().find("at byte "), std::string_view::npos) << what;
    if (status.is(ErrorKind::kInvalid)) {
      ++versions_;
      EXPECT_NE(status.message().find("upgrade"), std::string_view::npos) << status.message();
    }
  }

  TestBatch batch_ = small_batch();
  BuiltBatch built_;
  Bytes object_;
  Entry entry_;
  std::string key_;
  std::vector<std::vector<RunRow>> rows_;
  mutable std::size_t versions_ = 0;
};

TEST_F(BatchDamage, NoneIsNoComplaint) {
  put_object(memory_, entry_, object_);
  EXPECT_TRUE(read_index().is_ok()) << read_index().to_string();
  for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
    EXPECT_TRUE(read_runs(rank).is_ok()) << read_runs(rank).to_string();
  }
}

TEST_F(BatchDamage, AnyByteChangedIsFoundByWhoeverReadsIt) {
  for (std::size_t place = 0; place < object_.size(); ++place) {
    for (const std::byte change : {std::byte{1}, std::byte{0x80}}) {
      object_[place] ^= change;
      put_object(memory_, entry_, object_);
      const std::string what = "byte " + std::to_string(place) + ": ";
      if (place < runs_begin() || place >= runs_end()) expect_complaint(read_index(), what);
      for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
        if (owns(rank, place)) {
          expect_complaint(read_runs(rank), what);
        } else {
          EXPECT_TRUE(read_runs(rank).is_ok()) << what << "not this rank's";
        }
      }
      object_[place] ^= change;
    }
  }
  // The header of each run, and the index: two bytes, changed twice.
  EXPECT_EQ(versions_, 4 * (built_.ranks * built_.steps + 1));
}

TEST_F(BatchDamage, TruncatedAnywhereIsFoundByEverybody) {
  for (std::size_t size = 0; size < object_.size(); ++size) {
    put_object(memory_, entry_, ByteSpan(object_).first(size));
    const std::string what = "cut to " + std::to_string(size) + ": ";
    expect_complaint(read_index(), what);
    for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
      expect_complaint(read_runs(rank), what);
    }
  }
  EXPECT_EQ(versions_, 0U);
}

/// Each object's entry, read from the other's bytes.
TEST_F(BatchDamage, AnotherObjectIsFound) {
  TestBatch other = small_batch();
  const auto expect_found = [&](const std::function<void(BatchIdentity&)>& change) {
    other.options.identity = batch_.options.identity;
    change(other.options.identity);
    const BuiltBatch built = other.build();
    entry_.size_bytes = built.size_bytes;
    put_object(memory_, entry_, object_of(built));
    expect_complaint(read_index(), "index");
    expect_complaint(read_runs(HdpRank(0)), "run");
    entry_.run_table = built_.run_table;  // Right rows for the wrong object.
    const auto complaint = read_runs(HdpRank(0));
    EXPECT_TRUE(complaint.is(ErrorKind::kCorruption)) << complaint.to_string();
    entry_.run_table.clear();
  };
  expect_found([](BatchIdentity& identity) { identity.stream = StreamUuid{}; });
  expect_found([](BatchIdentity& identity) { identity.producer = "q"; });
  expect_found([](BatchIdentity& identity) { identity.term = Term(4); });
  expect_found([](BatchIdentity& identity) { identity.seq = Seq(8); });
  EXPECT_EQ(versions_, 0U);
}

/// Rank 1's first run where rank 0's are looked for, and all others behind it.
TEST_F(BatchDamage, RunsThatChangedPlacesAreFound) {
  const auto at = [this](std::uint64_t place) {
    return object_.begin() + static_cast<std::ptrdiff_t>(place);
  };
  const Slice moved = rows_[1][0].slice();
  std::rotate(at(rows_[0][0].offset_bytes), at(moved.offset_bytes), at(moved.end()));
  put_object(memory_, entry_, object_);
  expect_complaint(read_runs(HdpRank(0)), "rank 0");
  expect_complaint(read_runs(HdpRank(1)), "rank 1");
}

}  // namespace
}  // namespace batchloom::store
