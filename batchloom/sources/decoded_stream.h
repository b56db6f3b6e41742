// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/decoder.h"

namespace batchloom::sources {

/// Where decoding can begin: at the begin of a frame.
struct SeekPoint {
  std::uint64_t file_offset = 0;     ///< Of the frame.
  std::uint64_t content_offset = 0;  ///< Of the first byte that is decoded from it.

  friend bool operator==(const SeekPoint&, const SeekPoint&) = default;
};

/// Between two seek points that are kept lie at least so many bytes of content: 16 bytes of memory
/// a MiB, however small frames are.
inline constexpr std::uint64_t kSeekGapBytes = std::uint64_t{1} << 20;

/// The content of a compressed file, in order. Memory: that of the decoder, and 128 KiB.
///
/// Errors beside those of the file: `corruption` at an offset of the file where bytes cannot be
/// decoded, where a checksum of gzip or zstd does not match, where the file ends within a frame, or
/// where what stands behind a frame is none. An empty file is a cut one: no program writes such.
/// Zeros behind gzip's last member are padding.
class DecodedStream final : public ByteStream {
 public:
  /// `file` must outlive the stream, and is compressed. No I/O. `exhausted`: there is no memory.
  static Result<std::unique_ptr<DecodedStream>> open(ByteReader& file, Compression compression);

  std::string_view name() const override { return file_.name(); }
  Result<std::size_t> read(std::span<std::byte> out, const CallOptions& call) override;

  /// Goes on from there, also after an error. No I/O.
  void go_to(const SeekPoint& point);

  /// Of the next byte.
  std::uint64_t content_offset() const { return content_offset_; }
  /// Those that were passed, the first frame's included.
  const std::vector<SeekPoint>& seek_points() const { return points_; }

 private:
  DecodedStream(ByteReader& file, Compression compression, std::unique_ptr<Decoder> decoder)
      : file_(file), compression_(compression), decoder_(std::move(decoder)) {}

  /// False at the end of the file.
  Result<bool> begin_frame(const CallOptions& call);
  /// Gets more of the file where nothing is left of what there was.
  Status refill(const CallOptions& call);
  Status skip_padding(const CallOptions& call);
  void take(std::size_t bytes);
  Status fault(std::string_view what) const;

  ByteReader& file_;
  const Compression compression_;
  const std::unique_ptr<Decoder> decoder_;
  Bytes buffer_;
  ByteSpan input_;                 ///< Of buffer_, what is not decoded yet.
  std::uint64_t file_offset_ = 0;  ///< Of input_'s begin.
  std::uint64_t content_offset_ = 0;
  bool in_frame_ = false;
  std::vector<SeekPoint> points_;
};

}  // namespace batchloom::sources
