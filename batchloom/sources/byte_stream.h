// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"

namespace batchloom::sources {

/// Content from its begin to its end, once: what a file holds, or what it was compressed from.
/// One thread at a time. Kinds of errors: faults.h.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// What errors call it: the file's path.
  virtual std::string_view name() const = 0;

  /// Fills `out` with what comes next, and says how much that is: less than was asked for at the
  /// end of the content only. Blocks for as long as the storage does. After an error the stream is
  /// of no use any more.
  virtual Result<std::size_t> read(std::span<std::byte> out, const CallOptions& call) = 0;

  /// Steps over up to so many bytes that need not be read for it; says how many. No I/O.
  virtual std::uint64_t skip(std::uint64_t /*bytes*/) { return 0; }
};

struct FileStretch {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

/// The bytes of a file as they are. `file` must outlive the stream.
std::unique_ptr<ByteStream> stream_of(ByteReader& file);
/// Those of a stretch, which lies within the file.
std::unique_ptr<ByteStream> stream_of(ByteReader& file, const FileStretch& stretch);

}  // namespace batchloom::sources
