// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::sources {

/// An open plain file of so many bytes.
struct SizedFile {
  objstore::Fd fd;
  std::uint64_t size_bytes = 0;
};

/// Blocks. `not_found` where nothing has that name: "<path>: there is no <what>"; else as
/// stamp_of().
Result<SizedFile> open_sized(const std::string& path, std::string_view what);

/// A file in memory, for as long as this lives. It must not be changed in place or cut meanwhile:
/// a reader of a mapped file that was cut dies of SIGBUS. Immutable; thread-safe.
class MappedFile {
 public:
  /// As open_sized(); `unavailable` where it cannot be mapped.
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path, std::string_view what);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteSpan bytes() const { return bytes_; }

 private:
  explicit MappedFile(ByteSpan bytes) : bytes_(bytes) {}

  const ByteSpan bytes_;
};

}  // namespace batchloom::sources
