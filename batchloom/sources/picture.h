// SPDX-License-Identifier: Apache-2.0
// Pictures: from a JPEG or a PNG to rows of RGB that patches tile.
//
//   1 picture_size    reads the header: width and height
//   2 grid_of         how many cells a picture of that size gets, by the stream's rules
//   3 decode_picture  decodes, makes it 8-bit RGB, and resamples it to exactly that grid
//
// The pixels are a function of the bytes and the grid: the same on every host, with and without
// SIMD (docs/formats/pictures.md says how). EXIF's orientation, gamma and colour profiles are not
// looked at: the pixels are those that the file stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"

namespace batchloom::sources {

/// More pixels than these, or a longer side, are a decompression bomb: refused by the header alone.
/// What one picture takes while it is decoded is bounded by it: 8 bytes for each of its pixels.
inline constexpr std::uint64_t kMaxPicturePixels = std::uint64_t{1} << 26;
inline constexpr std::uint32_t kMaxPictureSidePx = 65'535;

// What PictureRules may say.
inline constexpr std::uint32_t kMaxPatchPx = 256;
inline constexpr std::uint32_t kMaxPictureMerge = 8;
inline constexpr std::uint32_t kMaxPatches = 1U << 20;

/// How a stream's pictures become patches; [image] of a pipeline's file.
struct PictureRules {
  std::uint32_t patch_px = 14;       ///< A side of a patch; 1 to 256.
  std::uint32_t merge = 1;           ///< Along each side, patches that become one token; 1 to 8.
  std::uint32_t max_patches = 1024;  ///< Larger pictures are made smaller; merge^2 to 2^20.

  /// Of the pixels of one patch.
  std::uint32_t patch_bytes() const { return 3 * patch_px * patch_px; }
  friend bool operator==(const PictureRules&, const PictureRules&) = default;
};

/// `invalid`, naming the rule and its limits.
Status check_picture_rules(const PictureRules& rules);

struct PictureSize {
  std::uint32_t width_px = 0;
  std::uint32_t height_px = 0;

  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

/// The tokens of a picture: rows x columns cells of unit_px x unit_px pixels.
struct PictureGrid {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t unit_px = 0;  ///< patch_px * merge.

  std::uint32_t tokens() const { return rows * columns; }
  /// Of the picture that fills the grid, in pixels.
  PictureSize size() const { return {.width_px = columns * unit_px, .height_px = rows * unit_px}; }
  /// Of its pixels, 3 each.
  std::uint64_t bytes() const { return std::uint64_t{rows} * unit_px * columns * unit_px * 3; }

  friend bool operator==(const PictureGrid&, const PictureGrid&) = default;
};

/// The grid of a picture of `size`, which nothing but `size` and `rules` decides. With all lengths
/// in units of unit_px and M = max_patches / merge^2, the most tokens:
///
///   rows = max(1, round(height))      columns = max(1, round(width))        halves go up
///
/// and where rows * columns > M the picture is scaled by s = sqrt(M / (height * width)) first, and
/// rounded down, so that it fits:
///
///   rows = max(1, floor(s * height))  columns = max(1, floor(s * width))
///
/// That is smart_resize of Qwen2-VL, with max_pixels = max_patches * patch_px^2 and no min_pixels,
/// but in integers: floor(s * height) = isqrt(height * M / width). And what that one gets wrong in
/// pictures much longer than wide is right here: neither side grows by being scaled down, and
/// rows * columns <= M even where one of them was raised to 1. There is no limit to proportions.
///
/// Preconditions (checked): rules that check_picture_rules takes; both sides at least 1.
PictureGrid grid_of(const PictureSize& size, const PictureRules& rules);

/// The size that the header of a JPEG or a PNG says; pixels are not looked at. `corruption`, saying
/// what is wrong with the bytes: neither JPEG nor PNG (it names what they look like), a header that
/// is cut or broken, no pixels, more than kMaxPicturePixels; or a kind of JPEG that nobody writes
/// for pictures to be seen (12-bit, lossless, two components).
Result<PictureSize> picture_size(ByteSpan encoded);

/// Decodes a picture to its end and resamples it to the grid's size: rows * unit_px rows of
/// columns * unit_px pixels of 3 bytes, red first. Transparent pixels lie over white. `corruption`
/// where picture_size says so, or the bytes do not decode to the end without a complaint: a cut
/// picture is an error, and never grey pixels. After an error `out` holds anything. `exhausted`
/// where there is no memory. `invalid` where out.size() != grid.bytes(), or a side of the grid is
/// above 2^22 pixels. Blocking work, about 10 ms for a megapixel of JPEG and 30 of PNG;
/// thread-safe.
Status decode_picture(ByteSpan encoded, const PictureGrid& grid, std::span<std::byte> out);

}  // namespace batchloom::sources
