// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/decoded_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kSkipBytes = 64 << 10;

class DecodedFile final : public ByteReader {
 public:
  DecodedFile(std::unique_ptr<ByteReader> file, ContentMap map,
              std::unique_ptr<DecodedStream> stream)
      : file_(std::move(file)), map_(std::move(map)), stream_(std::move(stream)) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t size_bytes() const override { return map_.content_bytes; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    if (out.size() > map_.content_bytes || offset > map_.content_bytes - out.size()) {
      return ends_early(map_.content_bytes, offset + out.size());
    }
    if (out.empty()) return Status::ok();
    const Status done = read_content(offset, out, call);
    lost_ = !done.is_ok();
    return done;
  }

 private:
  Status read_content(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) {
    const auto behind =
        std::ranges::upper_bound(map_.seek_points, offset, {}, &SeekPoint::content_offset);
    const SeekPoint& nearest = *std::prev(behind);
    const std::uint64_t at = stream_->content_offset();
    if (lost_ || at > offset || at < nearest.content_offset) stream_->go_to(nearest);
    Bytes skipped;
    while (stream_->content_offset() < offset) {
      skipped.resize(kSkipBytes);
      const std::uint64_t left = offset - stream_->content_offset();
      BL_RETURN_IF_ERROR(
          fill(std::span(skipped).first(std::min<std::uint64_t>(left, kSkipBytes)), call));
    }
    return fill(out, call);
  }

  Status fill(std::span<std::byte> out, const CallOptions& call) {
    const std::uint64_t end = stream_->content_offset() + out.size();
    BL_ASSIGN_OR_RETURN(const std::size_t size, stream_->read(out, call));
    return size == out.size() ? Status::ok() : ends_early(stream_->content_offset(), end);
  }

  Status ends_early(std::uint64_t end, std::uint64_t expected) const {
    return Status::corruption(fmt::format(
        "{}: its content ends at {}; {} bytes of it were expected", file_->name(), end, expected));
  }

  const std::unique_ptr<ByteReader> file_;
  const ContentMap map_;
  const std::unique_ptr<DecodedStream> stream_;  ///< Reads file_.
  bool lost_ = false;                            ///< Where the stream is, after an error.
};

}  // namespace

Result<std::unique_ptr<ByteReader>> open_decoded(std::unique_ptr<ByteReader> file, ContentMap map) {
  BL_ASSIGN_OR_RETURN(auto stream, DecodedStream::open(*file, map.compression));
  return std::unique_ptr<ByteReader>(
      std::make_unique<DecodedFile>(std::move(file), std::move(map), std::move(stream)));
}

}  // namespace batchloom::sources
