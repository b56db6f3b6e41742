// SPDX-License-Identifier: Apache-2.0
// What every ShardReader must do, as one suite of GoogleTest cases. A format's own test
// instantiates it with a shard that another program wrote:
//
//   INSTANTIATE_TEST_SUITE_P(Jsonl, ReaderConformance, testing::Values(text_format()),
//                            format_name);
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

void PrintTo(const Record& record, std::ostream* out);

using ShardFiles = std::vector<std::unique_ptr<ByteReader>>;

/// A format's shard and how to read it.
struct ReaderFormat {
  std::string name;
  std::vector<Bytes> files;
  std::vector<Bytes> empty_files;  ///< Of a shard without records.
  std::vector<Record> records;
  std::function<Result<std::unique_ptr<ShardReader>>(ShardFiles)> open;
  /// Whether other bytes at `offset` of a file may give another record, for nothing says that it is
  /// wrong: those of a text, say.
  std::function<bool(std::size_t file, std::size_t offset)> may_change_records;
  /// Whether a shard is one record, whatever it holds: there is no empty one, and without a
  /// checksum nothing tells that a file was cut.
  bool is_one_record = false;
};

inline void PrintTo(const ReaderFormat& format, std::ostream* out) {
  *out << format.name;
}

/// The instantiation's name generator.
std::string format_name(const testing::TestParamInfo<ReaderFormat>& format);

class ReaderConformance : public testing::TestWithParam<ReaderFormat> {
 protected:
  Result<std::unique_ptr<ShardReader>> open(const std::vector<Bytes>& files) const;
  /// Of the shard as it is, which can be opened.
  std::unique_ptr<ShardReader> open() const;
  /// Opens and reads all that `files` hold: each record is as it was, or named, or the shard is
  /// refused; `same` false: it may be another one.
  void expect_equal_or_named(const std::vector<Bytes>& files, bool same) const;
};

/// A file of tests/fixtures.
Bytes fixture_bytes(const std::string& name);

/// Of tests/fixtures/shards/<name>.records, which write_shards.py explains.
std::vector<Record> fixture_records(const std::string& name);

/// A record and its number, read with a reader's first call.
Result<std::optional<BadRecord>> read_record(ShardReader& reader, std::uint64_t number,
                                             Record& out);

}  // namespace batchloom::sources
