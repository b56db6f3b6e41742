// SPDX-License-Identifier: Apache-2.0
// Lengths of real samples, from the files that people have of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::simulator {

struct LengthFile {
  std::string path;
  /// Of a CSV file: a name of its heading, or a number from 1. Empty: the file's only column.
  std::string column = {};
  /// Of JSON Lines, tars and Parquet, whose records have no length before. Outlives the call;
  /// nullptr: none was said.
  const sources::Tokenizer* tokenizer = nullptr;
  sources::RecordFields fields = sources::TextField{.text = "text"};
};

/// Files of records, which have lengths once they are tokenized.
enum class RecordFormat : std::uint8_t { kJsonLines, kTar, kParquet };

/// As errors say it: "JSON Lines", "tars", "Parquet files".
std::string_view to_string(RecordFormat format);

/// By a file's name; nullopt: it has no such records.
std::optional<RecordFormat> record_format(const std::string& path);

/// Of a line of text or a row of CSV, and of all lengths of a file.
inline constexpr std::size_t kRowMaxBytes = std::size_t{1} << 20;
inline constexpr std::size_t kFileLengthsMax = std::size_t{1} << 28;

/// Lengths in tokens, in the file's order, each from 1 to 2^32 - 1. What a file is, its name says,
/// in small letters or capitals:
///
///   x.csv   Rows of fields between commas (RFC 4180: a field in double quotes may have commas,
///           line ends and doubled quotes in it). A column that is asked for by name has it in the
///           first row; by number, the first row is a heading if it holds no number there.
///   x.jsonl The records of JSON Lines (sources/jsonl_reader.h), as `tokenizer` counts them. One
///           without tokens does not count: nobody trains on it. 16 bytes of memory a record.
///   x.tar   The samples of a WebDataset tar (sources/tar_reader.h), in the same way.
///   x.parquet
///           The rows of Parquet (sources/parquet_reader.h), in the same way, but in no memory.
///   x.idx   The index of a Megatron data set (sources/megatron_index.h): the tokens of its
///           documents, of which those without tokens do not count either.
///   else    A number on each line; spaces around it and empty lines do not count.
///
/// Reads with a small buffer, whatever the size of the file. Errors name the file, the line or the
/// offset (of records their number too), what is there and what was expected. `invalid`: a file
/// without lengths, one cut short, one of another kind, a row above kRowMaxBytes, a column that is
/// missing or whose name two have, a bad record, records and no tokenizer, a length of 0 or below
/// or above 32 bits, more than kFileLengthsMax; and as InputFile. `corruption`: an .idx file that
/// is none, is cut or contradicts itself; files of records that their readers refuse.
Result<std::vector<std::uint32_t>> read_lengths(const LengthFile& file);

}  // namespace batchloom::simulator
