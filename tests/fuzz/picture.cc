// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a picture: as it stands, and as a PNG with right checksums. It is
// decoded to its end or refused; what its header says holds while it is decoded; and it has the
// same pixels each time.
#include <array>

#include "batchloom/sources/picture.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

/// A few bytes may claim a picture that takes seconds.
constexpr std::uint64_t kMaxPixels = 1 << 16;
constexpr std::size_t kSignatureBytes = 8;

std::uint32_t load_be(ByteSpan in) {
  std::uint32_t value = 0;
  for (const std::byte byte : in.first(4))
    value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

/// The checksum of a PNG's chunks, bit by bit.
std::uint32_t png_crc(ByteSpan bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

/// With the checksum that each of its chunks would have.
Bytes with_checksums(ByteSpan input) {
  Bytes png(input.begin(), input.end());
  for (std::size_t at = kSignatureBytes; at + 12 <= png.size();) {
    const std::uint64_t size = load_be(std::span(png).subspan(at));
    if (size > png.size() - at - 12) break;
    const std::span<std::byte> chunk = std::span(png).subspan(at, size + 12);
    const std::uint32_t crc = png_crc(chunk.subspan(4, size + 4));
    for (std::size_t i = 0; i < 4; ++i) {
      chunk[size + 8 + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    }
    at += chunk.size();
  }
  return png;
}

void attempt(ByteSpan encoded) {
  const Result<PictureSize> size = picture_size(encoded);
  if (!size.is_ok()) {
    BL_CHECK(size.is(ErrorKind::kCorruption), size.status().to_string());
    return;
  }
  const std::uint64_t pixels = std::uint64_t{size->width_px} * size->height_px;
  BL_CHECK(pixels > 0 && pixels <= kMaxPicturePixels, "a size that is refused");
  if (pixels > kMaxPixels) return;
  constexpr std::array kRules{PictureRules{.patch_px = 1, .merge = 1, .max_patches = 1 << 20},
                              PictureRules{.patch_px = 3, .merge = 2, .max_patches = 64}};
  for (const PictureRules& rules : kRules) {
    const PictureGrid grid = grid_of(*size, rules);
    Bytes once(grid.bytes());
    Bytes again(grid.bytes(), std::byte{0xa5});
    const Status status = decode_picture(encoded, grid, once);
    BL_CHECK(status.is_ok() || status.is(ErrorKind::kCorruption), status.to_string());
    BL_CHECK(decode_picture(encoded, grid, again).to_string() == status.to_string(),
             "another outcome the second time");
    if (status.is_ok()) BL_CHECK(once == again, "other pixels the second time");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input);
  attempt(with_checksums(input));
  return 0;
}

}  // namespace batchloom::sources
