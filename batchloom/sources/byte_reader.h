// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"

namespace batchloom::sources {

/// Bytes from `offset` on that are to fill `out`.
struct ReadStretch {
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

/// A file's bytes, read by position. Several threads may read at once, unless the maker says
/// otherwise. Kinds of errors: faults.h.
class ByteReader {
 public:
  virtual ~ByteReader() = default;

  /// What errors call it: its path.
  virtual std::string_view name() const = 0;

  /// As of opening. No I/O.
  virtual std::uint64_t size_bytes() const = 0;

  /// Fills all of `out` with the bytes from `offset` on. Blocks for as long as the storage does.
  /// `corruption` where the file ends before; then, as after every error, `out` holds anything.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out,
                         const CallOptions& call) = 0;

  /// As read_at() of each of them, which may cost less together.
  virtual Status read_all(std::span<const ReadStretch> stretches, const CallOptions& call) {
    for (const ReadStretch& stretch : stretches) {
      BL_RETURN_IF_ERROR(read_at(stretch.offset, stretch.out, call));
    }
    return Status::ok();
  }
};

/// A plain file, which a link may lead to. `not_found` where there is none; `invalid` for a folder,
/// a pipe or a missing permission; else as in objstore/file_ops.h. Of CallOptions only the stop
/// token ends a call, between reads: a disk has no deadline.
Result<std::unique_ptr<ByteReader>> open_file(const std::string& path);

/// Bytes that are in memory already.
std::unique_ptr<ByteReader> read_bytes(std::string name, Bytes bytes);

}  // namespace batchloom::sources
