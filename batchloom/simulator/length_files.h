// SPDX-License-Identifier: Apache-2.0
// Lengths of real samples, from the files that people have of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::simulator {

struct LengthFile {
  std::string path;
  /// Of a CSV file: a name of its heading, or a number from 1. Empty: the file's only column.
  std::string column = {};
  /// Of JSON Lines and tars, whose records have no length before. Outlives the call; nullptr: none
  /// was said.
  const sources::Tokenizer* tokenizer = nullptr;
  sources::RecordFields fields = sources::TextField{.text = "text"};
};

/// By its name.
bool is_json_lines(const std::string& path);
bool is_tar(const std::string& path);

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
///   x.idx   The index of a Megatron data set (sources/megatron_index.h): the tokens of its
///           documents, of which those without tokens do not count either.
///   else    A number on each line; spaces around it and empty lines do not count.
///
/// Reads with a small buffer, whatever the size of the file. Errors name the file, the line or the
/// offset (of JSON Lines the record too), what is there and what was expected. `invalid`: a file
/// without lengths, one cut short, one of another kind (Parquet cannot be read yet), a row above
/// kRowMaxBytes, a column that is missing or whose name two have, a bad record, JSON Lines and no
/// tokenizer, a length of 0 or below or above 32 bits, more than kFileLengthsMax; and as InputFile.
/// `corruption`: an .idx file that is none, is cut or contradicts itself; JSON Lines that are
/// compressed or not in UTF-8.
Result<std::vector<std::uint32_t>> read_lengths(const LengthFile& file);

}  // namespace batchloom::simulator
