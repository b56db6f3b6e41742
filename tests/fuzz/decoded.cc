// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a file that is compressed by gzip, and by zstd. It is decoded to
// its end or refused as corrupt; and content that is read by position, from the end to the begin,
// is what it was in order.
#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/sources/decoded_file.h"
#include "batchloom/sources/decoded_stream.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

/// A few bytes may be decoded to a thousand times as many.
constexpr std::size_t kMaxContentBytes = 1 << 20;
constexpr std::uint64_t kPieceBytes = 7'001;

/// All of it, in pieces of a size that divides nothing; nullopt where the file is refused.
std::optional<Bytes> content_of(DecodedStream& stream) {
  Bytes content;
  while (content.size() < kMaxContentBytes) {
    const std::size_t before = content.size();
    content.resize(before + kPieceBytes);
    const Result<std::size_t> size = stream.read(std::span(content).subspan(before), {});
    if (!size.is_ok()) {
      fuzz::check_refusal(size.status());
      return std::nullopt;
    }
    content.resize(before + *size);
    BL_CHECK(stream.content_offset() == content.size(), "it lost count");
    if (*size < kPieceBytes) return content;
  }
  return std::nullopt;
}

void attempt(ByteSpan input, Compression compression) {
  auto file = read_bytes("fuzz", Bytes(input.begin(), input.end()));
  const auto stream = DecodedStream::open(*file, compression).value();
  const std::optional<Bytes> content = content_of(*stream);
  if (!content) return;
  const auto decoded = open_decoded(std::move(file), {.compression = compression,
                                                      .seek_points = stream->seek_points(),
                                                      .content_bytes = content->size()})
                           .value();
  Bytes piece;
  for (std::uint64_t end = content->size(); end > 0;) {
    piece.resize(std::min(end, kPieceBytes * 40));
    end -= piece.size();
    const Status status = decoded->read_at(end, piece, {});
    BL_CHECK(status.is_ok(), status.to_string());
    BL_CHECK(std::ranges::equal(piece, std::span(*content).subspan(end, piece.size())),
             "other content by position than in order");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input, Compression::kGzip);
  attempt(input, Compression::kZstd);
  return 0;
}

}  // namespace batchloom::sources
