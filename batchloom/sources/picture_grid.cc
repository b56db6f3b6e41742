// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "batchloom/base/check.h"
#include "batchloom/sources/picture.h"

namespace batchloom::sources {
namespace {

/// The largest root whose square is at most `square`, bit by bit.
std::uint64_t isqrt(std::uint64_t square) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::bit_ceil(square | 1); bit > 0; bit /= 2) {
    const std::uint64_t with_bit = root | bit;
    if (with_bit <= square / with_bit) root = with_bit;
  }
  return root;
}

/// Cells of a side that is not scaled.
std::uint64_t rounded_cells(std::uint64_t side_px, std::uint64_t unit_px) {
  return std::max<std::uint64_t>(1, (2 * side_px + unit_px) / (2 * unit_px));
}

}  // namespace

Status check_picture_rules(const PictureRules& rules) {
  if (rules.patch_px < 1 || rules.patch_px > kMaxPatchPx) {
    return Status::invalid(
        fmt::format("patch_px is {}: it is 1 to {}", rules.patch_px, kMaxPatchPx));
  }
  if (rules.merge < 1 || rules.merge > kMaxPictureMerge) {
    return Status::invalid(
        fmt::format("merge is {}: it is 1 to {}", rules.merge, kMaxPictureMerge));
  }
  const std::uint32_t one_token = rules.merge * rules.merge;
  if (rules.max_patches < one_token || rules.max_patches > kMaxPatches) {
    return Status::invalid(fmt::format("max_patches is {}: with merge = {} it is {} to {}",
                                       rules.max_patches, rules.merge, one_token, kMaxPatches));
  }
  return Status::ok();
}

PictureGrid grid_of(const PictureSize& size, const PictureRules& rules) {
  const Status sound = check_picture_rules(rules);
  BL_CHECK(sound.is_ok(), sound.to_string());
  BL_CHECK(size.width_px > 0 && size.height_px > 0, "a picture without pixels");
  const std::uint64_t width = size.width_px;
  const std::uint64_t height = size.height_px;
  const std::uint32_t unit_px = rules.patch_px * rules.merge;
  const std::uint64_t patches = rules.max_patches;
  const std::uint64_t patches_per_token = std::uint64_t{rules.merge} * rules.merge;
  const std::uint64_t max_tokens = patches / patches_per_token;

  std::uint64_t rows = rounded_cells(height, unit_px);
  std::uint64_t columns = rounded_cells(width, unit_px);
  if (rows * columns > max_tokens) {
    const auto scaled = [&](std::uint64_t side, std::uint64_t other) {
      return std::max<std::uint64_t>(1, isqrt(side * patches / (other * patches_per_token)));
    };
    rows = std::min(rows, scaled(height, width));
    columns = std::min(columns, scaled(width, height));
    // One of them may have been raised to 1: then the other is what fits.
    rows = std::min(rows, max_tokens / std::min(columns, max_tokens));
    columns = std::min(columns, max_tokens / rows);
  }
  return {.rows = static_cast<std::uint32_t>(rows),
          .columns = static_cast<std::uint32_t>(columns),
          .unit_px = unit_px};
}

}  // namespace batchloom::sources
