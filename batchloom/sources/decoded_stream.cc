// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/decoded_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kInputBytes = 128 << 10;

}  // namespace

Result<std::unique_ptr<DecodedStream>> DecodedStream::open(ByteReader& file,
                                                           Compression compression) {
  BL_ASSIGN_OR_RETURN(auto decoder, make_decoder(compression));
  return std::unique_ptr<DecodedStream>(new DecodedStream(file, compression, std::move(decoder)));
}

Result<std::size_t> DecodedStream::read(std::span<std::byte> out, const CallOptions& call) {
  std::size_t made = 0;
  while (made < out.size()) {
    if (!in_frame_) {
      BL_ASSIGN_OR_RETURN(in_frame_, begin_frame(call));
      if (!in_frame_) break;
    }
    BL_RETURN_IF_ERROR(refill(call));
    const Result<Decoder::Progress> progress = decoder_->decode(input_, out.subspan(made));
    if (progress.is(ErrorKind::kCorruption)) return fault(progress.status().message());
    BL_RETURN_IF_ERROR(progress.status());
    if (progress->taken == 0 && progress->made == 0 && !progress->frame_ended) {
      return fault("the file ends within a frame; it was cut");
    }
    take(progress->taken);
    made += progress->made;
    content_offset_ += progress->made;
    in_frame_ = !progress->frame_ended;
  }
  return made;
}

void DecodedStream::go_to(const SeekPoint& point) {
  decoder_->restart();
  input_ = {};
  file_offset_ = point.file_offset;
  content_offset_ = point.content_offset;
  in_frame_ = false;
}

Result<bool> DecodedStream::begin_frame(const CallOptions& call) {
  if (file_.size_bytes() == 0) return fault("the file is empty; it was cut");
  if (compression_ == Compression::kGzip && file_offset_ > 0)
    BL_RETURN_IF_ERROR(skip_padding(call));
  if (file_offset_ == file_.size_bytes()) return false;
  if (points_.empty() || content_offset_ >= points_.back().content_offset + kSeekGapBytes) {
    points_.push_back({.file_offset = file_offset_, .content_offset = content_offset_});
  }
  return true;
}

Status DecodedStream::refill(const CallOptions& call) {
  if (!input_.empty()) return Status::ok();
  const std::uint64_t left = file_.size_bytes() - file_offset_;
  buffer_.resize(kInputBytes);
  const std::span<std::byte> chunk = std::span(buffer_).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(left, kInputBytes)));
  BL_RETURN_IF_ERROR(file_.read_at(file_offset_, chunk, call));
  input_ = chunk;
  return Status::ok();
}

Status DecodedStream::skip_padding(const CallOptions& call) {
  while (file_offset_ < file_.size_bytes()) {
    BL_RETURN_IF_ERROR(refill(call));
    const auto behind = std::ranges::find_if(input_, [](std::byte b) { return b != std::byte{0}; });
    take(static_cast<std::size_t>(behind - input_.begin()));
    if (!input_.empty()) break;
  }
  return Status::ok();
}

void DecodedStream::take(std::size_t bytes) {
  input_ = input_.subspan(bytes);
  file_offset_ += bytes;
}

Status DecodedStream::fault(std::string_view what) const {
  return shard_fault(file_.name(), file_offset_,
                     fmt::format("{}: {}", to_string(compression_), what));
}

}  // namespace batchloom::sources
