// SPDX-License-Identifier: Apache-2.0
// A file that somebody named on a command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "batchloom/base/status.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::simulator {

/// Open for reading, from its start to its end. One thread at a time. Calls block for as long as
/// the disk does. Errors name the path and the reason: `not_found` where there is no such file,
/// `invalid` for a folder or a missing permission, else as in file_ops.h.
class InputFile {
 public:
  static Result<InputFile> open(std::string path);

  const std::string& path() const { return path_; }
  /// Fills `out`; the count is short only at the end.
  Result<std::size_t> read(std::span<std::byte> out);
  /// 0 for what has none, as a pipe.
  Result<std::uint64_t> size_bytes() const;

 private:
  InputFile(std::string path, objstore::Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  objstore::Fd file_;
};

/// The whole file. `invalid` where it has more than `most_bytes`.
Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes);

}  // namespace batchloom::simulator
