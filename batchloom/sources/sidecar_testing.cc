// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_testing.h"

#include <gtest/gtest.h>

#include "batchloom/base/hash.h"
#include "batchloom/sources/sidecar_writer.h"

namespace batchloom::sources {
namespace {

/// The intervals of a mask, found by looking at each id and the one before.
std::vector<LossInterval> intervals_of(const Record& record) {
  std::vector<LossInterval> intervals;
  for (std::uint32_t i = 0; i < record.ids.size(); ++i) {
    const auto counts = [&](std::uint32_t id) {
      return record.loss_mask.empty() || record.loss_mask[id] != 0;
    };
    if (!counts(i)) continue;
    if (i == 0 || !counts(i - 1)) intervals.push_back({i, i});
    intervals.back().end = i + 1;
  }
  return intervals;
}

}  // namespace

TestRecord test_record(std::uint64_t number, std::uint32_t tokens, std::string_view mask) {
  Record record;
  record.place = {.offset_bytes = 1'000 * number, .size_bytes = 900 + number};
  for (std::uint32_t i = 0; i < tokens; ++i) {
    record.ids.push_back(static_cast<TokenId>(mix64(number * 1'000'003 + i) & 0xffff));
  }
  for (const char digit : mask) record.loss_mask.push_back(digit == '1' ? 1 : 0);
  return {.place = record.place, .record = record};
}

std::vector<TestRecord> test_records(std::size_t count) {
  std::vector<TestRecord> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    switch (i % 5) {
      case 0: records.push_back(test_record(i, 7)); break;
      case 1: records.push_back(test_record(i, 4, "0110")); break;
      case 2: records.push_back(test_record(i, 0)); break;
      case 3: records.push_back({.place = {.offset_bytes = 1'000 * i, .size_bytes = 17}}); break;
      default: records.push_back(test_record(i, 6, "101011"));
    }
  }
  return records;
}

SidecarHeader test_header() {
  return {.shard = {.size_bytes = 123'456,
                    .modified_ns = 1'700'000'000'123'456'789,
                    .ends_checksum = 0x0123456789abcdef},
          .rules = {.tokenizer_digest = 0x1111222233334444, .fields_digest = 0x5555666677778888},
          .contents = {.id_width_bytes = 2, .loss_intervals = true},
          .block_records = 2};
}

Result<SidecarTotals> write_sidecar(objstore::FileOps& files, const std::string& path,
                                    const SidecarHeader& header,
                                    const std::vector<TestRecord>& records) {
  BL_ASSIGN_OR_RETURN(const auto writer, SidecarWriter::create(files, path, header));
  for (const TestRecord& record : records) {
    BL_RETURN_IF_ERROR(record.record ? writer->append(*record.record)
                                     : writer->append_bad(record.place));
  }
  return writer->finish();
}

Bytes sidecar_bytes(const SidecarHeader& header, const std::vector<TestRecord>& records) {
  objstore::PowerCutFileOps files;
  EXPECT_TRUE(write_sidecar(files, "/index", header, records).is_ok());
  const auto file = files.open_read("/index").value();
  Bytes bytes(file->size_bytes().value());
  EXPECT_TRUE(file->read(0, bytes).is_ok());
  return bytes;
}

ToldRecord told(const RecordPayload& payload) {
  ToldRecord record{.record = payload.record, .ids = {}, .loss = {}};
  for (std::size_t i = 0; i < payload.ids.size(); ++i) record.ids.push_back(payload.ids[i]);
  for (std::size_t i = 0; i < payload.loss.size(); ++i) record.loss.push_back(payload.loss[i]);
  return record;
}

ToldRecord expected(const SidecarContents& contents, const TestRecord& record) {
  ToldRecord result;
  result.record.is_bad = !record.record;
  result.record.size.place = record.place;
  if (!record.record) return result;
  result.record.size = size_of(*record.record);
  if (contents.id_width_bytes > 0) result.ids = record.record->ids;
  if (contents.loss_intervals) result.loss = intervals_of(*record.record);
  return result;
}

}  // namespace batchloom::sources
