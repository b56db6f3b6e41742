// SPDX-License-Identifier: Apache-2.0
// A sidecar index in memory, used as it lies there. Nothing of it is used before it was checked:
//
//   header, footer         by open()
//   a row of the directory, and with it the columns of its block
//                          before the first record of the block is told
//   a record's ids and loss intervals
//                          whenever they are asked for
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/sidecar_format.h"

namespace batchloom::sources {

/// What an index says of a record.
struct IndexedRecord {
  RecordSize size;
  bool is_bad = false;  ///< Then it has no tokens.

  friend bool operator==(const IndexedRecord&, const IndexedRecord&) = default;
};

/// Ids as they are stored; borrowed from the index.
class StoredIds {
 public:
  StoredIds() = default;
  StoredIds(ByteSpan bytes, std::uint32_t width_bytes) : bytes_(bytes), width_bytes_(width_bytes) {}

  std::size_t size() const { return width_bytes_ == 0 ? 0 : bytes_.size() / width_bytes_; }
  /// Little-endian, aligned to their width.
  ByteSpan bytes() const { return bytes_; }
  std::uint32_t width_bytes() const { return width_bytes_; }
  TokenId operator[](std::size_t i) const {
    return width_bytes_ == 2 ? load_le<std::uint16_t>(&bytes_[2 * i])
                             : load_le<std::uint32_t>(&bytes_[4 * i]);
  }

 private:
  ByteSpan bytes_;
  std::uint32_t width_bytes_ = 0;
};

/// Ids [begin, end) of a record are counted by the loss, as labels of the ids before them.
struct LossInterval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  friend bool operator==(const LossInterval&, const LossInterval&) = default;
};

/// Ascending, disjoint and not adjoining; borrowed from the index.
class LossIntervals {
 public:
  LossIntervals() = default;
  explicit LossIntervals(ByteSpan bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size() / 8; }
  LossInterval operator[](std::size_t i) const {
    return {load_le<std::uint32_t>(&bytes_[8 * i]), load_le<std::uint32_t>(&bytes_[8 * i + 4])};
  }

 private:
  ByteSpan bytes_;
};

struct RecordPayload {
  IndexedRecord record;
  LossIntervals loss;  ///< Empty, too, where the index holds none.
  StoredIds ids;       ///< As many as tokens; none where the index holds none.
};

/// Thread-safe. Errors are `corruption`, with the name of the index and the byte.
class SidecarView {
 public:
  /// Checks header and footer. `not_found` for another version of the format. `bytes` are borrowed
  /// and must stay the same for as long as the view and what it has given live.
  static Result<SidecarView> open(std::string name, ByteSpan bytes);

  const SidecarHeader& header() const { return header_; }
  const SidecarTotals& totals() const { return footer_.totals; }

  /// In constant time, but for the first record of a block. `invalid` for a record that is not
  /// there.
  Result<IndexedRecord> record(std::uint64_t record) const;

  /// As above, and takes as long as the record is large; for one record again and again, as for all
  /// parts of a long one, only the first time.
  Result<RecordPayload> payload(std::uint64_t record) const;

 private:
  /// What is known of a block.
  struct Block {
    std::uint64_t first_record = 0;
    std::uint64_t columns_at = 0;
    BlockShape shape;
    BlockColumns at;  ///< From the begin of the file.
  };

  SidecarView(std::string name, ByteSpan bytes) : name_(std::move(name)), bytes_(bytes) {}

  /// The block of a record, checked.
  Result<Block> block_of(std::uint64_t record) const;
  Result<Block> checked_row(std::uint64_t block, bool is_checked) const;
  Result<IndexedRecord> record_in(const Block& block, std::uint64_t record) const;
  Status check_loss(const RecordPayload& payload, std::uint64_t at) const;

  template <class T>
  T cell(std::uint64_t column, std::uint64_t row) const {
    return load_le<T>(&bytes_[column + row * sizeof(T)]);
  }

  std::string name_;
  ByteSpan bytes_;
  SidecarHeader header_;
  SidecarFooter footer_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  ///< By block.
  /// The last long record of which the payload was checked.
  std::unique_ptr<std::atomic<std::uint64_t>> checked_long_;
};

}  // namespace batchloom::sources
