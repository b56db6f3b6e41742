// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/simulator/input_file.h"

namespace batchloom::simulator {

/// A text, byte by byte, which knows its line. A byte order mark at its start is left out.
class ByteReader {
 public:
  explicit ByteReader(InputFile file) : file_(std::move(file)) {}

  const std::string& path() const { return file_.path(); }
  /// Of the byte that comes next, from 1.
  std::uint64_t line() const { return line_; }
  /// nullopt at the end.
  Result<std::optional<char>> next();

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

  InputFile file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBufferBytes);
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t line_ = 1;
  bool begun_ = false;
};

/// The next line without its end; nullopt behind the last. `invalid` above `most_bytes`.
Result<std::optional<std::string>> next_line(ByteReader& bytes, std::size_t most_bytes);

/// The fields of the next row of CSV (RFC 4180); nullopt behind the last. A quote within a field
/// that does not begin with one is a character like others. `invalid` for a row above `most_bytes`,
/// a quoted field that does not end, and one that is not followed by a comma or the line's end.
Result<std::optional<std::vector<std::string>>> next_row(ByteReader& bytes, std::size_t most_bytes);

}  // namespace batchloom::simulator
