// SPDX-License-Identifier: Apache-2.0
// The fixed parts of a sidecar index. docs/formats/sidecar_index.md tells every byte.
//
//   header | block | block | ... | directory | footer
//
// A block is what belongs to up to block_records records: their payloads (loss intervals and ids),
// then their columns (offsets, sizes, counts). A row of the directory says where the columns of a
// block lie, and what their CRC is. So one pass writes it, a record is found in constant time, and
// what is read of it can be checked without reading more than its block's columns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/fingerprint.h"

namespace batchloom::sources {

/// What decides how a shard becomes records.
struct RecordRules {
  std::uint64_t tokenizer_digest = 0;  ///< Tokenizer::digest().
  std::uint64_t fields_digest = 0;     ///< Of which fields hold what, and where the loss counts.

  friend bool operator==(const RecordRules&, const RecordRules&) = default;
};

/// What an index holds beside places and counts.
struct SidecarContents {
  /// Bytes of an id: 2 or 4; 0 where it holds none.
  std::uint8_t id_width_bytes = 0;
  /// Which labels count, and so what of them each part of a record has.
  bool loss_intervals = false;

  bool has_payload() const { return id_width_bytes > 0 || loss_intervals; }
  friend bool operator==(const SidecarContents&, const SidecarContents&) = default;
};

inline constexpr std::uint32_t kBlockRecords = 65'536;

struct SidecarHeader {
  ShardFingerprint shard;
  RecordRules rules;
  SidecarContents contents;
  std::uint32_t block_records = kBlockRecords;  ///< 1 to kBlockRecords.

  friend bool operator==(const SidecarHeader&, const SidecarHeader&) = default;
};

/// Of all records of a shard.
struct SidecarTotals {
  std::uint64_t records = 0;  ///< With those below.
  std::uint64_t tokens = 0;
  std::uint64_t valid_labels = 0;
  std::uint64_t empty_records = 0;  ///< Without tokens, though good.
  std::uint64_t bad_records = 0;

  friend bool operator==(const SidecarTotals&, const SidecarTotals&) = default;
};

struct SidecarFooter {
  SidecarTotals totals;
  std::uint64_t directory_at = 0;
  std::uint32_t header_crc = 0;

  friend bool operator==(const SidecarFooter&, const SidecarFooter&) = default;
};

struct DirectoryRow {
  std::uint64_t columns_at = 0;
  std::uint32_t columns_bytes = 0;
  std::uint32_t columns_crc = 0;
  std::uint32_t size_width_bytes = 4;  ///< Of the column of sizes: 4 or 8.

  friend bool operator==(const DirectoryRow&, const DirectoryRow&) = default;
};

inline constexpr std::uint16_t kSidecarVersion = 1;
inline constexpr std::size_t kSidecarHeaderBytes = 64;
inline constexpr std::size_t kSidecarFooterBytes = 64;
inline constexpr std::size_t kDirectoryRowBytes = 24;
/// In the column of valid labels: the record is bad. It has no tokens.
inline constexpr std::uint32_t kBadRecordLabels = UINT32_MAX;

/// The next place that a payload or a column may begin at.
constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + 7) / 8 * 8;
}

/// Where the columns of a block lie, from its begin; a column that is left out has no bytes.
struct BlockColumns {
  std::uint64_t offsets = 0;
  std::uint64_t payloads = 0;
  std::uint64_t sizes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t valid_labels = 0;
  std::uint64_t intervals = 0;
  std::uint64_t payload_crcs = 0;
  std::uint64_t end = 0;  ///< With the padding.
};

struct BlockShape {
  std::uint64_t records = 0;
  std::uint32_t size_width_bytes = 4;
  SidecarContents contents;
};

BlockColumns columns_of(const BlockShape& shape);

/// Bytes of a record's payload.
std::uint64_t payload_bytes(const SidecarContents& contents, std::uint64_t intervals,
                            std::uint64_t tokens);

/// Blocks of an index with so many records.
std::uint64_t block_count(std::uint64_t records, std::uint32_t block_records);

using HeaderBytes = std::array<std::byte, kSidecarHeaderBytes>;
using FooterBytes = std::array<std::byte, kSidecarFooterBytes>;
using RowBytes = std::array<std::byte, kDirectoryRowBytes>;

HeaderBytes encode(const SidecarHeader& header);
FooterBytes encode(const SidecarFooter& footer);
RowBytes encode(const DirectoryRow& row, std::uint64_t block);

/// The CRC that a header states.
std::uint32_t stated_header_crc(ByteSpan header);

/// `name` is the index's path. `corruption` at the byte where a rule is broken; `not_found` for
/// another version of the format: there is no index that this build can use.
/// Preconditions: `bytes` have the size of what is decoded.
Result<SidecarHeader> decode_header(std::string_view name, ByteSpan bytes);

/// Where a footer stands.
struct FooterPlace {
  std::uint64_t file_bytes = 0;  ///< At least a header and a footer.
  std::uint32_t header_crc = 0;
  std::uint32_t block_records = kBlockRecords;
};
Result<SidecarFooter> decode_footer(std::string_view name, const FooterPlace& place,
                                    ByteSpan bytes);

/// A row, and what it must agree with.
struct RowPlace {
  std::uint64_t block = 0;
  std::uint64_t directory_at = 0;
  std::uint64_t records = 0;  ///< Of this block.
  SidecarContents contents;
};
/// What a row says that decode_row() has taken.
DirectoryRow read_row(ByteSpan bytes);
Result<DirectoryRow> decode_row(std::string_view name, const RowPlace& place, ByteSpan bytes);

}  // namespace batchloom::sources
