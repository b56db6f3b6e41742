// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom::sources {
namespace {

/// Ids are laid out in stretches of this many.
constexpr std::size_t kStretchIds = 4'096;

/// Where `mask` changes: [begin, end), [begin, end), ... Without a mask all of the ids count.
class IntervalsOf {
 public:
  explicit IntervalsOf(const Record& record) : record_(record) {}

  struct Interval {
    std::uint32_t begin;
    std::uint32_t end;
  };

  std::optional<Interval> next() {
    const auto count = static_cast<std::uint32_t>(record_.ids.size());
    if (record_.loss_mask.empty()) {
      if (at_ == count) return std::nullopt;
      at_ = count;
      return Interval{0, count};
    }
    while (at_ < count && record_.loss_mask[at_] == 0) ++at_;
    if (at_ == count) return std::nullopt;
    const std::uint32_t begin = at_;
    while (at_ < count && record_.loss_mask[at_] != 0) ++at_;
    return Interval{begin, at_};
  }

 private:
  const Record& record_;
  std::uint32_t at_ = 0;
};

template <class Stored, class Value>
void put_column(const std::vector<Value>& values, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_le(static_cast<Stored>(values[i]), out + i * sizeof(Stored));
  }
}

}  // namespace

Result<std::unique_ptr<SidecarWriter>> SidecarWriter::create(objstore::FileOps& files,
                                                             std::string path,
                                                             const SidecarHeader& header) {
  const HeaderBytes bytes = encode(header);
  if (const auto decoded = decode_header(path, bytes); !decoded.is_ok()) {
    return Status::invalid(std::string(decoded.status().message()));
  }
  std::unique_ptr<SidecarWriter> writer(new SidecarWriter(std::move(path), header));
  writer->header_crc_ = stated_header_crc(bytes);
  auto file = ReplacedFile::create(files, writer->path_);
  if (!file.is_ok()) return writer->explain(file.status());
  writer->file_ = *std::move(file);
  BL_RETURN_IF_ERROR(writer->put(bytes));
  return writer;
}

Status SidecarWriter::check(const Record& record) const {
  const auto refuse = [&](std::string_view what) {
    return Status::invalid(fmt::format("{}: record {}: {}", path_, totals_.records, what));
  };
  if (record.ids.size() >= std::numeric_limits<std::uint32_t>::max()) {
    return refuse(fmt::format("{} ids are too many", record.ids.size()));
  }
  if (!record.loss_mask.empty() && record.loss_mask.size() != record.ids.size()) {
    return refuse(
        fmt::format("a loss mask of {} for {} ids", record.loss_mask.size(), record.ids.size()));
  }
  if (header_.contents.id_width_bytes == 2) {
    const auto wide = std::ranges::find_if(record.ids, [](TokenId id) { return id > 0xffff; });
    if (wide != record.ids.end()) {
      return refuse(fmt::format("id {} does not fit 2 bytes; take 4", *wide));
    }
  }
  return Status::ok();
}

Status SidecarWriter::append(const Record& record) {
  BL_RETURN_IF_ERROR(check(record));
  BL_ASSIGN_OR_RETURN(const Payload payload, write_payload(record));
  return append_row(size_of(record), payload);
}

Status SidecarWriter::append(const RecordSize& record) {
  BL_CHECK(!header_.contents.has_payload(), "a record's ids are missing");
  if (record.valid_labels > (record.tokens == 0 ? 0 : record.tokens - 1)) {
    return Status::invalid(fmt::format("{}: record {}: {} labels of {} tokens", path_,
                                       totals_.records, record.valid_labels, record.tokens));
  }
  return append_row(record, {});
}

Status SidecarWriter::append_bad(const RecordPlace& place) {
  return append_row({.place = place, .tokens = 0, .valid_labels = kBadRecordLabels},
                    {.at = file_->written_bytes(), .intervals = 0, .crc = 0});
}

Result<SidecarWriter::Payload> SidecarWriter::write_payload(const Record& record) {
  Payload payload{.at = file_->written_bytes(), .intervals = 0, .crc = 0};
  const auto append = [&](ByteSpan bytes) {
    payload.crc = crc32c(bytes, payload.crc);
    return put(bytes);
  };
  if (header_.contents.loss_intervals) {
    IntervalsOf intervals(record);
    while (const auto interval = intervals.next()) {
      std::array<std::byte, 8> bytes;
      store_le(interval->begin, bytes.data());
      store_le(interval->end, &bytes[4]);
      BL_RETURN_IF_ERROR(append(bytes));
      ++payload.intervals;
    }
  }
  if (const std::size_t width = header_.contents.id_width_bytes; width > 0) {
    std::array<std::byte, 4 * kStretchIds> bytes;
    for (std::size_t first = 0; first < record.ids.size(); first += kStretchIds) {
      const std::size_t count = std::min(kStretchIds, record.ids.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        const TokenId id = record.ids[first + i];
        if (width == 2) store_le(static_cast<std::uint16_t>(id), &bytes[2 * i]);
        if (width == 4) store_le(id, &bytes[4 * i]);
      }
      BL_RETURN_IF_ERROR(append(ByteSpan(bytes).first(width * count)));
    }
  }
  const std::array<std::byte, 8> zeros{};
  BL_RETURN_IF_ERROR(
      append(ByteSpan(zeros).first(aligned(file_->written_bytes()) - file_->written_bytes())));
  return payload;
}

Status SidecarWriter::append_row(const RecordSize& record, const Payload& payload) {
  columns_.offsets.push_back(record.place.offset_bytes);
  columns_.payloads.push_back(payload.at);
  columns_.sizes.push_back(record.place.size_bytes);
  columns_.tokens.push_back(record.tokens);
  columns_.valid_labels.push_back(record.valid_labels);
  columns_.intervals.push_back(payload.intervals);
  columns_.payload_crcs.push_back(payload.crc);
  ++totals_.records;
  totals_.tokens += record.tokens;
  const bool is_bad = record.valid_labels == kBadRecordLabels;
  totals_.bad_records += is_bad ? 1 : 0;
  totals_.empty_records += !is_bad && record.tokens == 0 ? 1 : 0;
  totals_.valid_labels += is_bad ? 0 : record.valid_labels;
  return columns_.offsets.size() == header_.block_records ? end_block() : Status::ok();
}

Status SidecarWriter::end_block() {
  const bool wide = std::ranges::any_of(columns_.sizes, [](std::uint64_t size) {
    return size > std::numeric_limits<std::uint32_t>::max();
  });
  const BlockShape shape{.records = columns_.offsets.size(),
                         .size_width_bytes = wide ? 8U : 4U,
                         .contents = header_.contents};
  const BlockColumns at = columns_of(shape);
  Bytes bytes(at.end);
  put_column<std::uint64_t>(columns_.offsets, bytes.data());
  if (wide) {
    put_column<std::uint64_t>(columns_.sizes, &bytes[at.sizes]);
  } else {
    put_column<std::uint32_t>(columns_.sizes, &bytes[at.sizes]);
  }
  put_column<std::uint32_t>(columns_.tokens, &bytes[at.tokens]);
  put_column<std::uint32_t>(columns_.valid_labels, &bytes[at.valid_labels]);
  if (shape.contents.loss_intervals) {
    put_column<std::uint32_t>(columns_.intervals, &bytes[at.intervals]);
  }
  if (shape.contents.has_payload()) {
    put_column<std::uint64_t>(columns_.payloads, &bytes[at.payloads]);
    put_column<std::uint32_t>(columns_.payload_crcs, &bytes[at.payload_crcs]);
  }
  directory_.push_back({.columns_at = file_->written_bytes(),
                        .columns_bytes = static_cast<std::uint32_t>(bytes.size()),
                        .columns_crc = crc32c(bytes),
                        .size_width_bytes = shape.size_width_bytes});
  columns_ = {};
  return put(bytes);
}

Status SidecarWriter::put(ByteSpan bytes) {
  const Status wrote = file_->put(bytes);
  return wrote.is_ok() ? wrote : explain(wrote);
}

Result<SidecarTotals> SidecarWriter::finish() {
  if (!columns_.offsets.empty()) BL_RETURN_IF_ERROR(end_block());
  const SidecarFooter footer{
      .totals = totals_, .directory_at = file_->written_bytes(), .header_crc = header_crc_};
  for (std::size_t block = 0; block < directory_.size(); ++block) {
    BL_RETURN_IF_ERROR(put(encode(directory_[block], block)));
  }
  BL_RETURN_IF_ERROR(put(encode(footer)));
  const Status finished = file_->finish();
  if (!finished.is_ok()) return explain(finished);
  return totals_;
}

Status SidecarWriter::explain(const Status& error) const {
  return error.with_context(fmt::format("write the index {}", path_));
}

}  // namespace batchloom::sources
