// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

constexpr std::string_view kHeaderMagic = "BLSI";
constexpr std::string_view kFooterMagic = "BLSE";

// Of the header.
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kIdWidthAt = 6;
constexpr std::size_t kLossIntervalsAt = 7;
constexpr std::size_t kShardSizeAt = 8;
constexpr std::size_t kShardModifiedAt = 16;
constexpr std::size_t kShardEndsAt = 24;
constexpr std::size_t kTokenizerAt = 32;
constexpr std::size_t kFieldsAt = 40;
constexpr std::size_t kBlockRecordsAt = 48;
constexpr std::size_t kHeaderZeroAt = 52;
constexpr std::size_t kHeaderCrcAt = 60;

// Of the footer.
constexpr std::size_t kRecordsAt = 0;
constexpr std::size_t kTokensAt = 8;
constexpr std::size_t kValidLabelsAt = 16;
constexpr std::size_t kEmptyRecordsAt = 24;
constexpr std::size_t kBadRecordsAt = 32;
constexpr std::size_t kDirectoryAt = 40;
constexpr std::size_t kFooterZeroAt = 48;
constexpr std::size_t kStatedHeaderCrcAt = 52;
constexpr std::size_t kFooterMagicAt = 56;
constexpr std::size_t kFooterCrcAt = 60;

// Of a row of the directory.
constexpr std::size_t kColumnsAt = 0;
constexpr std::size_t kColumnsBytesAt = 8;
constexpr std::size_t kColumnsCrcAt = 12;
constexpr std::size_t kSizeWidthAt = 16;
constexpr std::size_t kRowCrcAt = 20;

std::uint64_t u64_at(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint64_t>(&bytes[at]);
}
std::uint32_t u32_at(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint32_t>(&bytes[at]);
}

void put_text(std::string_view text, std::byte* out) {
  std::ranges::copy(as_bytes(text), out);
}

std::uint32_t row_crc(ByteSpan row, std::uint64_t block) {
  std::array<std::byte, 8> number;
  store_le(block, number.data());
  return crc32c(row.first(kRowCrcAt), crc32c(number));
}

/// A part of the index, and where it begins: what errors name.
struct SidecarPart {
  std::string_view index;
  std::string_view name;
  std::uint64_t begin = 0;

  Status fault(std::size_t at, std::string_view what) const {
    return shard_fault(index, begin + at, fmt::format("{}: {}", name, what));
  }
  Status check_crc(std::size_t at, std::uint32_t stored, std::uint32_t computed) const {
    if (stored == computed) return Status::ok();
    return fault(at, fmt::format("damaged: CRC-32C is {:08x}, stored {:08x}", computed, stored));
  }
};

Status check_header_fields(const SidecarPart& part, ByteSpan bytes) {
  const auto id_width = std::to_integer<unsigned>(bytes[kIdWidthAt]);
  if (id_width != 0 && id_width != 2 && id_width != 4) {
    return part.fault(kIdWidthAt, fmt::format("ids of {} bytes; 2, 4 or none", id_width));
  }
  if (std::to_integer<unsigned>(bytes[kLossIntervalsAt]) > 1) {
    return part.fault(kLossIntervalsAt, "loss intervals are there (1) or not (0)");
  }
  const std::uint32_t block_records = u32_at(bytes, kBlockRecordsAt);
  if (block_records == 0 || block_records > kBlockRecords) {
    return part.fault(kBlockRecordsAt,
                      fmt::format("blocks of {} records; 1 to {}", block_records, kBlockRecords));
  }
  if (u64_at(bytes, kHeaderZeroAt) != 0) {
    return part.fault(kHeaderZeroAt, "reserved bytes are not zero");
  }
  return Status::ok();
}

/// Whether the directory lies where the records and the file's size leave room for it.
Status check_directory(const SidecarPart& part, const SidecarFooter& footer,
                       const FooterPlace& place) {
  const std::uint64_t room = place.file_bytes - kSidecarHeaderBytes - kSidecarFooterBytes;
  const std::uint64_t blocks = block_count(footer.totals.records, place.block_records);
  if (blocks > room / kDirectoryRowBytes) {
    return part.fault(kRecordsAt, fmt::format("{} records do not fit a file of {} bytes",
                                              footer.totals.records, place.file_bytes));
  }
  const std::uint64_t directory_at =
      place.file_bytes - kSidecarFooterBytes - blocks * kDirectoryRowBytes;
  if (footer.directory_at != directory_at || footer.directory_at % 8 != 0) {
    return part.fault(kDirectoryAt, fmt::format("a directory of {} rows at {}, expected at {}",
                                                blocks, footer.directory_at, directory_at));
  }
  return Status::ok();
}

}  // namespace

BlockColumns columns_of(const BlockShape& shape) {
  const std::uint64_t n = shape.records;
  const bool payload = shape.contents.has_payload();
  BlockColumns columns;
  columns.payloads = 8 * n;
  columns.sizes = columns.payloads + (payload ? 8 * n : 0);
  columns.tokens = columns.sizes + shape.size_width_bytes * n;
  columns.valid_labels = columns.tokens + 4 * n;
  columns.intervals = columns.valid_labels + 4 * n;
  columns.payload_crcs = columns.intervals + (shape.contents.loss_intervals ? 4 * n : 0);
  columns.end = aligned(columns.payload_crcs + (payload ? 4 * n : 0));
  return columns;
}

std::uint64_t payload_bytes(const SidecarContents& contents, std::uint64_t intervals,
                            std::uint64_t tokens) {
  return aligned(8 * intervals + contents.id_width_bytes * tokens);
}

std::uint64_t block_count(std::uint64_t records, std::uint32_t block_records) {
  return records / block_records + (records % block_records != 0 ? 1 : 0);
}

HeaderBytes encode(const SidecarHeader& header) {
  HeaderBytes out{};
  put_text(kHeaderMagic, out.data());
  store_le(kSidecarVersion, &out[kVersionAt]);
  out[kIdWidthAt] = std::byte{header.contents.id_width_bytes};
  out[kLossIntervalsAt] =
      std::byte{header.contents.loss_intervals ? std::uint8_t{1} : std::uint8_t{0}};
  store_le(header.shard.size_bytes, &out[kShardSizeAt]);
  store_le(static_cast<std::uint64_t>(header.shard.modified_ns), &out[kShardModifiedAt]);
  store_le(header.shard.ends_checksum, &out[kShardEndsAt]);
  store_le(header.rules.tokenizer_digest, &out[kTokenizerAt]);
  store_le(header.rules.fields_digest, &out[kFieldsAt]);
  store_le(header.block_records, &out[kBlockRecordsAt]);
  store_le(crc32c(ByteSpan(out).first(kHeaderCrcAt)), &out[kHeaderCrcAt]);
  return out;
}

FooterBytes encode(const SidecarFooter& footer) {
  FooterBytes out{};
  store_le(footer.totals.records, &out[kRecordsAt]);
  store_le(footer.totals.tokens, &out[kTokensAt]);
  store_le(footer.totals.valid_labels, &out[kValidLabelsAt]);
  store_le(footer.totals.empty_records, &out[kEmptyRecordsAt]);
  store_le(footer.totals.bad_records, &out[kBadRecordsAt]);
  store_le(footer.directory_at, &out[kDirectoryAt]);
  store_le(footer.header_crc, &out[kStatedHeaderCrcAt]);
  put_text(kFooterMagic, &out[kFooterMagicAt]);
  store_le(crc32c(ByteSpan(out).first(kFooterCrcAt)), &out[kFooterCrcAt]);
  return out;
}

RowBytes encode(const DirectoryRow& row, std::uint64_t block) {
  RowBytes out{};
  store_le(row.columns_at, &out[kColumnsAt]);
  store_le(row.columns_bytes, &out[kColumnsBytesAt]);
  store_le(row.columns_crc, &out[kColumnsCrcAt]);
  store_le(row.size_width_bytes, &out[kSizeWidthAt]);
  store_le(row_crc(out, block), &out[kRowCrcAt]);
  return out;
}

std::uint32_t stated_header_crc(ByteSpan header) {
  return u32_at(header, kHeaderCrcAt);
}

Result<SidecarHeader> decode_header(std::string_view name, ByteSpan bytes) {
  const SidecarPart part{.index = name, .name = "header", .begin = 0};
  if (as_text(bytes.first(kHeaderMagic.size())) != kHeaderMagic) {
    return part.fault(0, "not a sidecar index (the magic is missing)");
  }
  const auto version = load_le<std::uint16_t>(&bytes[kVersionAt]);
  if (version != kSidecarVersion) {
    return Status::not_found(fmt::format("{}: has format version {}, this build reads {}", name,
                                         version, kSidecarVersion));
  }
  BL_RETURN_IF_ERROR(
      part.check_crc(kHeaderCrcAt, stated_header_crc(bytes), crc32c(bytes.first(kHeaderCrcAt))));
  BL_RETURN_IF_ERROR(check_header_fields(part, bytes));
  SidecarHeader header;
  header.shard.size_bytes = u64_at(bytes, kShardSizeAt);
  header.shard.modified_ns = static_cast<std::int64_t>(u64_at(bytes, kShardModifiedAt));
  header.shard.ends_checksum = u64_at(bytes, kShardEndsAt);
  header.rules.tokenizer_digest = u64_at(bytes, kTokenizerAt);
  header.rules.fields_digest = u64_at(bytes, kFieldsAt);
  header.contents.id_width_bytes = std::to_integer<std::uint8_t>(bytes[kIdWidthAt]);
  header.contents.loss_intervals = bytes[kLossIntervalsAt] != std::byte{0};
  header.block_records = u32_at(bytes, kBlockRecordsAt);
  return header;
}

Result<SidecarFooter> decode_footer(std::string_view name, const FooterPlace& place,
                                    ByteSpan bytes) {
  const SidecarPart part{
      .index = name, .name = "footer", .begin = place.file_bytes - kSidecarFooterBytes};
  if (as_text(bytes.subspan(kFooterMagicAt, kFooterMagic.size())) != kFooterMagic) {
    return part.fault(kFooterMagicAt, "the file does not end with one: it was cut off");
  }
  BL_RETURN_IF_ERROR(
      part.check_crc(kFooterCrcAt, u32_at(bytes, kFooterCrcAt), crc32c(bytes.first(kFooterCrcAt))));
  SidecarFooter footer;
  footer.totals.records = u64_at(bytes, kRecordsAt);
  footer.totals.tokens = u64_at(bytes, kTokensAt);
  footer.totals.valid_labels = u64_at(bytes, kValidLabelsAt);
  footer.totals.empty_records = u64_at(bytes, kEmptyRecordsAt);
  footer.totals.bad_records = u64_at(bytes, kBadRecordsAt);
  footer.directory_at = u64_at(bytes, kDirectoryAt);
  footer.header_crc = u32_at(bytes, kStatedHeaderCrcAt);
  if (u32_at(bytes, kFooterZeroAt) != 0) {
    return part.fault(kFooterZeroAt, "reserved bytes are not zero");
  }
  if (footer.header_crc != place.header_crc) {
    return part.fault(kStatedHeaderCrcAt, "belongs to another header");
  }
  BL_RETURN_IF_ERROR(check_directory(part, footer, place));
  return footer;
}

DirectoryRow read_row(ByteSpan bytes) {
  return {.columns_at = u64_at(bytes, kColumnsAt),
          .columns_bytes = u32_at(bytes, kColumnsBytesAt),
          .columns_crc = u32_at(bytes, kColumnsCrcAt),
          .size_width_bytes = u32_at(bytes, kSizeWidthAt)};
}

Result<DirectoryRow> decode_row(std::string_view name, const RowPlace& place, ByteSpan bytes) {
  const SidecarPart part{.index = name,
                         .name = "directory",
                         .begin = place.directory_at + place.block * kDirectoryRowBytes};
  BL_RETURN_IF_ERROR(
      part.check_crc(kRowCrcAt, u32_at(bytes, kRowCrcAt), row_crc(bytes, place.block)));
  const DirectoryRow row = read_row(bytes);
  if (row.size_width_bytes != 4 && row.size_width_bytes != 8) {
    return part.fault(kSizeWidthAt, fmt::format("sizes of {} bytes; 4 or 8", row.size_width_bytes));
  }
  const std::uint64_t expected = columns_of({.records = place.records,
                                             .size_width_bytes = row.size_width_bytes,
                                             .contents = place.contents})
                                     .end;
  if (row.columns_bytes != expected) {
    return part.fault(kColumnsBytesAt,
                      fmt::format("columns of {} bytes, expected {}", row.columns_bytes, expected));
  }
  if (row.columns_at % 8 != 0 || row.columns_at < kSidecarHeaderBytes ||
      row.columns_at > place.directory_at ||
      row.columns_bytes > place.directory_at - row.columns_at) {
    return part.fault(kColumnsAt, fmt::format("columns at {} are not between header and directory",
                                              row.columns_at));
  }
  return row;
}

}  // namespace batchloom::sources
