// SPDX-License-Identifier: Apache-2.0
// zlib and libzstd behind a type of ours: only gzip_decoder.cc and zstd_decoder.cc include them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"

namespace batchloom::sources {

/// How a file is compressed.
enum class Compression : std::uint8_t {
  kNone,
  kGzip,  ///< RFC 1952: members, one after another.
  kZstd,  ///< RFC 8878: frames, some of which may be skippable, one after another.
};

/// "none", "gzip", "zstd".
std::string_view to_string(Compression compression);

/// As the end of a file's name says: .gz or .zst, else none.
Compression compression_of(std::string_view path);

/// Turns compressed bytes into content, a piece at a time. A frame is a stretch of the file that
/// can be decoded without what stands before it: a member of gzip, a frame of zstd. One thread at a
/// time.
class Decoder {
 public:
  struct Progress {
    std::size_t taken = 0;  ///< Of the compressed bytes.
    std::size_t made = 0;   ///< Of the content.
    bool frame_ended = false;
  };

  virtual ~Decoder() = default;

  /// Decodes what `in` and `out` have room for, up to the end of a frame; what is taken need not be
  /// given again. No progress: it needs more of `in`. `corruption` saying what is wrong with the
  /// bytes, checksums included; `exhausted` where there is no memory.
  virtual Result<Progress> decode(ByteSpan in, std::span<std::byte> out) = 0;

  /// Whatever comes next is the begin of a frame.
  virtual void restart() = 0;
};

/// zstd needs as much memory as a frame's window, which is 128 MiB at most; beyond: `corruption`.
Result<std::unique_ptr<Decoder>> make_gzip_decoder();
Result<std::unique_ptr<Decoder>> make_zstd_decoder();

/// Precondition: `compression` is not kNone.
Result<std::unique_ptr<Decoder>> make_decoder(Compression compression);

}  // namespace batchloom::sources
