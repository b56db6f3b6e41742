// SPDX-License-Identifier: Apache-2.0
// Every byte of a small object is changed, and every end cut off: whoever reads that part says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "batchloom/objstore/file_faults_testing.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;

class BatchDamage : public StoreTest {
 protected:
  explicit BatchDamage(TestBatch batch = small_batch()) : batch_(std::move(batch)) {
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
    // Two bytes of each frame hold its version, and another one is none that this build reads.
    EXPECT_TRUE(status.is(ErrorKind::kCorruption) || status.is(ErrorKind::kInvalid))
        << what << ": " << status.to_string();
    EXPECT_NE(status.message().find(key_), std::string_view::npos) << what << status.message();
    EXPECT_NE(status.message().find("at byte "), std::string_view::npos) << what;
    if (status.is(ErrorKind::kInvalid)) {
      ++versions_;
      EXPECT_NE(status.message().find("format version"), std::string_view::npos)
          << status.message();
    }
  }

  TestBatch batch_;
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

bool has_labels_and_tensors(const TestStep& step) {
  return std::ranges::any_of(step.tensors, [](const auto& of) { return !of.empty(); }) &&
         std::ranges::any_of(step.plan.samples, [](const model::PlanSample& sample) {
           return sample.valid_labels > 0 && sample.valid_labels < sample.tokens;
         });
}

/// The smallest of some objects with all that a piece may have, so that every byte can take every
/// value.
TestBatch tiny_batch() {
  std::optional<TestBatch> smallest;
  std::uint64_t least_bytes = UINT64_MAX;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TestBatch batch = random_batch({.seed = seed, .steps = 1, .ranks = 1, .samples = 1});
    const std::uint64_t size_bytes = batch.build().size_bytes;
    if (size_bytes >= least_bytes || !has_labels_and_tensors(batch.steps.front())) continue;
    least_bytes = size_bytes;
    smallest = std::move(batch);
  }
  return std::move(smallest).value();
}

/// Whoever reads the part in which a byte lies must complain; all others must get what was put in.
class EveryByteDamaged : public BatchDamage {
 protected:
  EveryByteDamaged() : BatchDamage(tiny_batch()) {
    put_object(memory_, entry_, object_);
    index_ = BatchReader(*other_).read_index(entry_, {}).value();
  }

  Result<FetchedPieces> read_piece(std::uint32_t position, std::uint32_t piece) {
    return BatchReader(*other_).read_pieces(entry_, *index_, position, std::span(&piece, 1), {});
  }
  bool is_around(std::uint64_t place) const { return place < runs_begin() || place >= runs_end(); }
  static bool owns_piece(const IndexedPiece& piece, std::uint64_t place) {
    bool owned = false;
    piece.slices.for_each(
        [&](const Slice& slice) { owned |= place >= slice.offset_bytes && place < slice.end(); });
    return owned;
  }
  /// Calls visit(position, number, piece) for each piece.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    for (std::uint32_t position = 0; position < built_.steps; ++position) {
      const auto& pieces = index_->pieces[position];
      for (std::uint32_t i = 0; i < pieces.size(); ++i) visit(position, i, pieces[i]);
    }
  }

  void expect_owners_complain(std::uint64_t place, const std::string& what) {
    std::size_t readers = 0;
    const auto complains = [&](const Status& status) {
      ++readers;
      expect_complaint(status, what);
    };
    if (is_around(place)) complains(read_index());
    for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
      if (owns(rank, place)) complains(read_runs(rank));
    }
    for_each_piece([&](std::uint32_t position, std::uint32_t i, const IndexedPiece& piece) {
      if (!owns_piece(piece, place)) return;
      complains(read_piece(position, i).status());
      ++pieces_damaged_;
    });
    EXPECT_GT(readers, 0U) << what << "nobody reads it";
  }
  void expect_others_get_what_was_put_in(std::uint64_t place, const std::string& what) {
    if (!is_around(place)) {
      const auto index = BatchReader(*other_).read_index(entry_, {});
      ASSERT_TRUE(index.is_ok()) << what << index.status().to_string();
      EXPECT_TRUE(compare_index(**index, batch_).is_ok()) << what;
    }
    for (HdpRank rank(0); rank.value < built_.ranks; ++rank) {
      if (owns(rank, place)) continue;
      const auto runs = BatchReader(*other_).read_runs(entry_, rank, {});
      ASSERT_TRUE(runs.is_ok()) << what << runs.status().to_string();
      for (std::uint32_t position = 0; position < built_.steps; ++position) {
        const Status same = compare_run((*runs)[position], batch_, position, rank);
        EXPECT_TRUE(same.is_ok()) << what << same.to_string();
      }
    }
    for_each_piece([&](std::uint32_t position, std::uint32_t i, const IndexedPiece& piece) {
      if (owns_piece(piece, place)) return;
      const auto read = read_piece(position, i);
      ASSERT_TRUE(read.is_ok()) << what << read.status().to_string();
      const Status same =
          compare_piece(read->pieces.at(0), batch_.steps[position], batch_.options.token_width, i);
      EXPECT_TRUE(same.is_ok()) << what << same.to_string();
    });
  }

  std::shared_ptr<const BatchIndex> index_;
  std::size_t pieces_damaged_ = 0;
};

TEST_F(EveryByteDamaged, AnyOtherValueIsFoundByWhoeverReadsIt) {
  const auto stride = static_cast<unsigned>(objstore::fault_stride());
  const std::size_t values = (254 + stride) / stride;
  std::size_t places_of_pieces = 0;
  for (std::size_t place = 0; place < object_.size() && !HasFailure(); ++place) {
    const std::byte was = object_[place];
    for (unsigned change = 1; change < 256; change += stride) {
      object_[place] = was ^ static_cast<std::byte>(change);
      put_object(memory_, entry_, object_);
      const std::string what =
          "byte " + std::to_string(place) + " changed by " + std::to_string(change) + ": ";
      expect_owners_complain(place, what);
      // They do not read the byte, or pass over it: that it was changed counts, not to what.
      if (change == 1) expect_others_get_what_was_put_in(place, what);
    }
    object_[place] = was;
    for_each_piece([&](std::uint32_t, std::uint32_t, const IndexedPiece& piece) {
      places_of_pieces += std::size_t{owns_piece(piece, place)};
    });
  }
  EXPECT_EQ(versions_, 2 * values * (built_.ranks * built_.steps + 1));
  EXPECT_GT(places_of_pieces, 20U) << "the object should hold some payload";
  EXPECT_EQ(pieces_damaged_, values * places_of_pieces);
}

TEST_F(EveryByteDamaged, HoldsAllThatAPieceMayHave) {
  EXPECT_LE(object_.size(), 2'500U);
  bool labels = false;
  bool tensors = false;
  for_each_piece([&](std::uint32_t, std::uint32_t, const IndexedPiece& piece) {
    labels |= piece.slices.labels.size_bytes > 0;
    tensors |= !piece.slices.tensors.empty();
  });
  EXPECT_TRUE(labels);
  EXPECT_TRUE(tensors);
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
