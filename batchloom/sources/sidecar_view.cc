// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

/// From so many bytes on it pays to remember that a payload was checked.
constexpr std::uint64_t kLongPayloadBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kNoRecord = UINT64_MAX;

}  // namespace

Result<SidecarView> SidecarView::open(std::string name, ByteSpan bytes) {
  SidecarView view(std::move(name), bytes);
  if (bytes.size() < kSidecarHeaderBytes + kSidecarFooterBytes) {
    return shard_fault(view.name_, bytes.size(),
                       fmt::format("cut off: a sidecar index has at least {} bytes",
                                   kSidecarHeaderBytes + kSidecarFooterBytes));
  }
  const ByteSpan header = bytes.first(kSidecarHeaderBytes);
  BL_ASSIGN_OR_RETURN(view.header_, decode_header(view.name_, header));
  const FooterPlace place{.file_bytes = bytes.size(),
                          .header_crc = stated_header_crc(header),
                          .block_records = view.header_.block_records};
  BL_ASSIGN_OR_RETURN(view.footer_,
                      decode_footer(view.name_, place, bytes.last(kSidecarFooterBytes)));
  const auto blocks = block_count(view.totals().records, view.header_.block_records);
  view.checked_ = std::make_unique<std::atomic<bool>[]>(blocks);
  view.checked_long_ = std::make_unique<std::atomic<std::uint64_t>>(kNoRecord);
  return view;
}

Result<SidecarView::Block> SidecarView::block_of(std::uint64_t record) const {
  if (record >= totals().records) {
    return Status::invalid(
        fmt::format("{}: record {} of {} is not there", name_, record, totals().records));
  }
  const std::uint64_t number = record / header_.block_records;
  std::atomic<bool>& checked = checked_[number];
  const bool is_checked = checked.load(std::memory_order_acquire);
  Result<Block> block = checked_row(number, is_checked);
  if (block.is_ok() && !is_checked) checked.store(true, std::memory_order_release);
  return block;
}

Result<SidecarView::Block> SidecarView::checked_row(std::uint64_t number, bool is_checked) const {
  Block block;
  block.first_record = number * header_.block_records;
  block.shape.records =
      std::min<std::uint64_t>(header_.block_records, totals().records - block.first_record);
  block.shape.contents = header_.contents;
  const RowPlace place{.block = number,
                       .directory_at = footer_.directory_at,
                       .records = block.shape.records,
                       .contents = header_.contents};
  const std::uint64_t row_at = footer_.directory_at + number * kDirectoryRowBytes;
  const ByteSpan stored = bytes_.subspan(row_at, kDirectoryRowBytes);
  DirectoryRow row;
  if (is_checked) {
    row = read_row(stored);
  } else {
    BL_ASSIGN_OR_RETURN(row, decode_row(name_, place, stored));
    const std::uint32_t crc = crc32c(bytes_.subspan(row.columns_at, row.columns_bytes));
    if (crc != row.columns_crc) {
      return shard_fault(
          name_, row.columns_at,
          fmt::format("block {}: damaged: CRC-32C of {} bytes is {:08x}, the directory has {:08x}",
                      number, row.columns_bytes, crc, row.columns_crc));
    }
  }
  block.columns_at = row.columns_at;
  block.shape.size_width_bytes = row.size_width_bytes;
  block.at = columns_of(block.shape);
  return block;
}

Result<IndexedRecord> SidecarView::record_in(const Block& block, std::uint64_t number) const {
  const std::uint64_t row = number - block.first_record;
  const std::uint64_t begin = block.columns_at;
  IndexedRecord record;
  record.size.place.offset_bytes = cell<std::uint64_t>(begin, row);
  record.size.place.size_bytes = block.shape.size_width_bytes == 8
                                     ? cell<std::uint64_t>(begin + block.at.sizes, row)
                                     : cell<std::uint32_t>(begin + block.at.sizes, row);
  record.size.tokens = cell<std::uint32_t>(begin + block.at.tokens, row);
  const auto labels = cell<std::uint32_t>(begin + block.at.valid_labels, row);
  const std::uint32_t most = record.size.tokens == 0 ? 0 : record.size.tokens - 1;
  record.is_bad = labels == kBadRecordLabels && record.size.tokens == 0;
  if (record.is_bad) return record;
  if (labels > most) {
    return shard_fault(
        name_, begin + block.at.valid_labels + 4 * row,
        fmt::format("record {}: {} labels of {} tokens", number, labels, record.size.tokens));
  }
  record.size.valid_labels = labels;
  return record;
}

Result<IndexedRecord> SidecarView::record(std::uint64_t record) const {
  BL_ASSIGN_OR_RETURN(const Block block, block_of(record));
  return record_in(block, record);
}

Result<RecordPayload> SidecarView::payload(std::uint64_t record) const {
  BL_ASSIGN_OR_RETURN(const Block block, block_of(record));
  RecordPayload payload;
  BL_ASSIGN_OR_RETURN(payload.record, record_in(block, record));
  if (!header_.contents.has_payload()) return payload;
  const std::uint64_t row = record - block.first_record;
  const auto at = cell<std::uint64_t>(block.columns_at + block.at.payloads, row);
  const std::uint64_t intervals =
      header_.contents.loss_intervals
          ? cell<std::uint32_t>(block.columns_at + block.at.intervals, row)
          : 0;
  const std::uint32_t tokens = payload.record.size.tokens;
  const std::uint64_t size = payload_bytes(header_.contents, intervals, tokens);
  if (at % 8 != 0 || at < kSidecarHeaderBytes || at > block.columns_at ||
      size > block.columns_at - at) {
    return shard_fault(name_, block.columns_at + block.at.payloads + 8 * row,
                       fmt::format("record {}: {} bytes at {} are not before the columns of its "
                                   "block, which begin at {}",
                                   record, size, at, block.columns_at));
  }
  payload.loss = LossIntervals(bytes_.subspan(at, 8 * intervals));
  const std::uint32_t width = header_.contents.id_width_bytes;
  payload.ids = StoredIds(bytes_.subspan(at + 8 * intervals, std::uint64_t{width} * tokens), width);
  // Else each part of a long record would cost a look at the whole of it.
  if (checked_long_->load(std::memory_order_acquire) == record) return payload;
  const auto stored = cell<std::uint32_t>(block.columns_at + block.at.payload_crcs, row);
  if (const std::uint32_t crc = crc32c(bytes_.subspan(at, size)); crc != stored) {
    return shard_fault(name_, at,
                       fmt::format("record {}: damaged: CRC-32C of {} bytes is {:08x}, stored "
                                   "{:08x}",
                                   record, size, crc, stored));
  }
  BL_RETURN_IF_ERROR(check_loss(payload, at));
  if (size >= kLongPayloadBytes) checked_long_->store(record, std::memory_order_release);
  return payload;
}

Status SidecarView::check_loss(const RecordPayload& payload, std::uint64_t at) const {
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < payload.loss.size(); ++i) {
    const LossInterval interval = payload.loss[i];
    const bool follows = i == 0 || interval.begin > before;
    if (!follows || interval.begin >= interval.end || interval.end > payload.record.size.tokens) {
      return shard_fault(
          name_, at + 8 * i,
          fmt::format("a loss interval [{}, {}) after {}, of {} tokens", interval.begin,
                      interval.end, before, payload.record.size.tokens));
    }
    before = interval.end;
  }
  return Status::ok();
}

}  // namespace batchloom::sources
