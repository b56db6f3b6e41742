// SPDX-License-Identifier: Apache-2.0
// libparquet behind a type of ours: parquet_file.cc, parquet_schema.cc and parquet_storage.cc alone
// include it and Arrow. Its exceptions and statuses end there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"

namespace batchloom::sources {

/// What a column is to hold.
enum class ParquetContent : std::uint8_t {
  kText,   ///< A text in each row.
  kIds,    ///< A list of whole numbers in each row.
  kMarks,  ///< A list of whole numbers, or of true and false.
};

/// A column that is read. "a.b" is the column of that name or, where there is none, the field b of
/// the structs in column a.
struct ParquetColumn {
  std::string name;
  ParquetContent content = ParquetContent::kText;
};

/// A row's list.
struct ParquetList {
  bool is_null = false;
  std::uint64_t size = 0;  ///< With null elements, and those that are not in `numbers`.
  std::optional<std::uint64_t> first_null = {};
  /// The elements, of which null ones are 0; no more than were asked for. Of unsigned 64 bits those
  /// above 2^63 - 1 are below 0.
  std::vector<std::int64_t> numbers = {};
};

/// The rows of a Parquet file, of which some columns are read. A reading goes from row to row of a
/// row group, page by page: going on costs what the rows between do, going back what those of the
/// row group before it do. Keeps, of each column, the page and the dictionary that it reads in.
/// One thread at a time.
///
/// Errors: `corruption` where the file is no Parquet, contradicts itself, does not match its
/// checksums, lacks a column, has one of another type, or needs more memory than it may have; after
/// it, as after every other error, the call may be repeated.
class ParquetFile {
 public:
  /// Reads the footer. `max_bytes` bounds the memory for pages, at least 1 MiB.
  static Result<std::unique_ptr<ParquetFile>> open(std::unique_ptr<ByteReader> file,
                                                   std::vector<ParquetColumn> columns,
                                                   std::uint64_t max_bytes,
                                                   const CallOptions& call);
  ~ParquetFile();

  std::string_view name() const;
  std::uint64_t rows() const;
  /// Where the first page of the first column begins, in the row's row group.
  std::uint64_t offset_of(std::uint64_t row) const;

  // Preconditions of both: `column` has such a content, and `row` is below rows().

  /// Nullopt where it is null. Any bytes; borrowed until the next call for this column.
  Result<std::optional<std::string_view>> text(std::size_t column, std::uint64_t row,
                                               const CallOptions& call);
  /// With at most `max_numbers` elements.
  Status list(std::size_t column, std::uint64_t row, std::uint64_t max_numbers,
              const CallOptions& call, ParquetList& out);
  /// Whether numbers below 0 are large ones.
  bool is_unsigned(std::size_t column) const;

 private:
  class Impl;
  explicit ParquetFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::sources
