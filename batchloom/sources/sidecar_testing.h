// SPDX-License-Identifier: Apache-2.0
// Sidecar indexes for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/sidecar_format.h"
#include "batchloom/sources/sidecar_view.h"

namespace batchloom::sources {

/// Without a record: a bad one.
struct TestRecord {
  RecordPlace place;
  std::optional<Record> record = {};
};

/// With ids, an id's number and its record's deciding what it is; `mask` as "1101".
TestRecord test_record(std::uint64_t number, std::uint32_t tokens, std::string_view mask = {});

/// Good ones with and without masks, an empty one and a bad one; at least 5.
std::vector<TestRecord> test_records(std::size_t count);

/// The header of an index that holds 2-byte ids and loss intervals, in blocks of 2 records.
SidecarHeader test_header();

/// Writes an index; what finish() said.
Result<SidecarTotals> write_sidecar(objstore::FileOps& files, const std::string& path,
                                    const SidecarHeader& header,
                                    const std::vector<TestRecord>& records);

/// The bytes of an index.
Bytes sidecar_bytes(const SidecarHeader& header, const std::vector<TestRecord>& records);

/// All that an index says of a record.
struct ToldRecord {
  IndexedRecord record;
  std::vector<TokenId> ids;
  std::vector<LossInterval> loss;

  friend bool operator==(const ToldRecord&, const ToldRecord&) = default;
};
ToldRecord told(const RecordPayload& payload);

/// What an index with these contents must say of it.
ToldRecord expected(const SidecarContents& contents, const TestRecord& record);

}  // namespace batchloom::sources
