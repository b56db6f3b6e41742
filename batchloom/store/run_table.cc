// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/run_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/store/damage.h"

namespace batchloom::store {
namespace {

constexpr std::size_t kRowBytes = 16;
constexpr std::size_t kSizeAt = 8;
constexpr std::size_t kHeaderCrcAt = 12;

/// Over whose rows they are, then the rows: another object's rows, or another rank's, never pass.
std::uint32_t rows_crc(const BatchIdentity& identity, model::HdpRank rank, ByteSpan rows) {
  std::byte numbers[24];
  store_le(identity.term.value, &numbers[0]);
  store_le(identity.seq.value, &numbers[8]);
  store_le(rank.value, &numbers[16]);
  store_le(static_cast<std::uint32_t>(identity.producer.size()), &numbers[20]);
  std::uint32_t crc = crc32c(identity.stream.bytes);
  crc = crc32c(numbers, crc);
  crc = crc32c(as_bytes(identity.producer), crc);
  return crc32c(rows, crc);
}

/// Whether a run begins at `expected` (anywhere from there on where it is a rank's first, whose
/// predecessor is another rank's) and lies among the runs.
Status check_row(const BatchContext& object, std::uint64_t at, const RunRow& row,
                 std::uint64_t expected, bool exactly) {
  const std::uint64_t limit =
      object.size_bytes < kBatchFooterBytes ? 0 : object.size_bytes - kBatchFooterBytes;
  const bool begins = exactly ? row.offset_bytes == expected : row.offset_bytes >= expected;
  if (begins && row.size_bytes > 0 && row.offset_bytes % kColumnAlignBytes == 0 &&
      row.size_bytes % kColumnAlignBytes == 0 && row.offset_bytes <= limit &&
      row.size_bytes <= limit - row.offset_bytes) {
    return Status::ok();
  }
  return corrupt_at(
      object.key, at,
      fmt::format("a run of {} bytes at byte {}; expected one {} byte {} that ends by byte {}, "
                  "both multiples of {}",
                  row.size_bytes, row.offset_bytes, exactly ? "at" : "from", expected, limit,
                  kColumnAlignBytes));
}

}  // namespace

std::uint64_t rank_rows_offset(model::HdpRank rank, std::uint32_t steps) {
  return kBatchHeaderBytes + rank.value * std::uint64_t{rank_rows_bytes(steps)};
}

std::uint64_t first_run_offset(std::uint32_t ranks, std::uint32_t steps) {
  return column_aligned(rank_rows_offset(model::HdpRank(ranks), steps));
}

Bytes encode_rank_rows(const BatchIdentity& identity, model::HdpRank rank,
                       std::span<const RunRow> rows) {
  Bytes bytes(rank_rows_bytes(static_cast<std::uint32_t>(rows.size())));
  std::byte* out = bytes.data();
  for (const RunRow& row : rows) {
    store_le(row.offset_bytes, out);
    store_le(row.size_bytes, out + kSizeAt);
    store_le(row.header_crc, out + kHeaderCrcAt);
    out += kRowBytes;
  }
  store_le(rows_crc(identity, rank, ByteSpan(bytes).first(kRowBytes * rows.size())), out);
  return bytes;
}

Result<std::vector<RunRow>> decode_rank_rows(const BatchContext& object, model::HdpRank rank,
                                             ByteSpan bytes) {
  const std::uint64_t at = rank_rows_offset(rank, object.steps);
  if (bytes.size() != rank_rows_bytes(object.steps)) {
    return corrupt_at(
        object.key, at,
        fmt::format("the run table has {} bytes of rank {}; {} steps make {}", bytes.size(),
                    rank.value, object.steps, rank_rows_bytes(object.steps)));
  }
  const ByteSpan stored_rows = bytes.first(kRowBytes * std::size_t{object.steps});
  const auto stored = load_le<std::uint32_t>(&bytes[stored_rows.size()]);
  const std::uint32_t computed = rows_crc(object.identity, rank, stored_rows);
  if (computed != stored) {
    return corrupt_at(
        object.key, at,
        fmt::format("damaged, or not the run table of rank {} in {}: CRC-32C is {:08x}, stored "
                    "{:08x}",
                    rank.value, to_string(object.identity), computed, stored));
  }
  std::vector<RunRow> rows;
  rows.reserve(object.steps);
  std::uint64_t expected = first_run_offset(object.ranks, object.steps);
  for (std::size_t place = 0; place < stored_rows.size(); place += kRowBytes) {
    const std::byte* in = &stored_rows[place];
    const RunRow row{.offset_bytes = load_le<std::uint64_t>(in),
                     .size_bytes = load_le<std::uint32_t>(in + kSizeAt),
                     .header_crc = load_le<std::uint32_t>(in + kHeaderCrcAt)};
    const bool follows = rank == model::HdpRank(0) || !rows.empty();
    BL_RETURN_IF_ERROR(check_row(object, at + place, row, expected, follows));
    expected = row.slice().end();
    rows.push_back(row);
  }
  return rows;
}

Result<BatchFront> decode_batch_front(const BatchContext& object, ByteSpan bytes) {
  const std::uint64_t runs_begin = first_run_offset(object.ranks, object.steps);
  if (bytes.size() != runs_begin) {
    return corrupt_at(object.key, bytes.size(),
                      fmt::format("truncated: runs begin at byte {}", runs_begin));
  }
  BatchFront front{.header = {}, .runs_end = runs_begin};
  BL_ASSIGN_OR_RETURN(front.header, decode_batch_header(object, bytes.first(kBatchHeaderBytes)));
  for (model::HdpRank rank(0); rank.value < object.ranks; ++rank) {
    const std::uint64_t at = rank_rows_offset(rank, object.steps);
    BL_ASSIGN_OR_RETURN(
        const std::vector<RunRow> rows,
        decode_rank_rows(object, rank, bytes.subspan(at, rank_rows_bytes(object.steps))));
    if (rows.empty() || rows.front().offset_bytes != front.runs_end) {
      return corrupt_at(object.key, at,
                        fmt::format("the runs of rank {} do not begin at byte {}, where those "
                                    "before end",
                                    rank.value, front.runs_end));
    }
    front.runs_end = rows.back().slice().end();
  }
  const std::uint64_t table_end = rank_rows_offset(model::HdpRank(object.ranks), object.steps);
  BL_RETURN_IF_ERROR(check_padding({.key = object.key}, table_end, bytes.subspan(table_end)));
  return front;
}

}  // namespace batchloom::store
