// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "batchloom/sources/picture.h"

namespace batchloom::sources {
namespace {

PictureRules any_rules() {
  const auto merge = *rc::gen::inRange<std::uint32_t>(1, 9);
  return {.patch_px = *rc::gen::inRange<std::uint32_t>(1, 257),
          .merge = merge,
          .max_patches = *rc::gen::inRange<std::uint32_t>(merge * merge, 5'000)};
}

PictureSize any_size() {
  return {.width_px = *rc::gen::inRange<std::uint32_t>(1, 9'000),
          .height_px = *rc::gen::inRange<std::uint32_t>(1, 9'000)};
}

TEST(PictureRulesTest, RefusedWhereTheyMakeNoTokens) {
  EXPECT_TRUE(check_picture_rules({}).is_ok());
  EXPECT_TRUE(check_picture_rules({.patch_px = 256, .merge = 8, .max_patches = 1 << 20}).is_ok());
  EXPECT_TRUE(check_picture_rules({.patch_px = 1, .merge = 8, .max_patches = 64}).is_ok());
  for (const PictureRules& rules : std::vector<PictureRules>{
           {.patch_px = 0},
           {.patch_px = 257},
           {.merge = 0},
           {.merge = 9},
           {.merge = 8, .max_patches = 63},
           {.max_patches = 0},
           {.max_patches = (1 << 20) + 1},
       }) {
    EXPECT_TRUE(check_picture_rules(rules).is(ErrorKind::kInvalid));
  }
}

TEST(PictureGridTest, SidesGoToTheNearestUnit) {
  const PictureRules rules{.patch_px = 14, .merge = 2, .max_patches = 1024};
  const auto grid = [&](std::uint32_t width, std::uint32_t height) {
    return grid_of({.width_px = width, .height_px = height}, rules);
  };
  EXPECT_EQ(grid(28, 56), (PictureGrid{.rows = 2, .columns = 1, .unit_px = 28}));
  EXPECT_EQ(grid(41, 42), (PictureGrid{.rows = 2, .columns = 1, .unit_px = 28}));
  EXPECT_EQ(grid(1, 1), (PictureGrid{.rows = 1, .columns = 1, .unit_px = 28}));
  EXPECT_EQ(grid(448, 448), (PictureGrid{.rows = 16, .columns = 16, .unit_px = 28}));
  EXPECT_EQ(grid(448, 448).bytes(), 448 * 448 * 3);
  EXPECT_EQ(grid(448, 448).tokens(), 256);
}

TEST(PictureGridTest, LargerPicturesAreMadeSmaller) {
  const PictureRules rules{.patch_px = 14, .merge = 1, .max_patches = 1024};
  // s = sqrt(1024 / (1000 / 14 * 2000 / 14)) = 0.3168, and 22.6 x 45.25 units are left.
  EXPECT_EQ(grid_of({.width_px = 2000, .height_px = 1000}, rules),
            (PictureGrid{.rows = 22, .columns = 45, .unit_px = 14}));
  EXPECT_EQ(grid_of({.width_px = 65'535, .height_px = 1}, rules),
            (PictureGrid{.rows = 1, .columns = 1024, .unit_px = 14}));
  EXPECT_EQ(grid_of({.width_px = 1, .height_px = 65'535}, rules),
            (PictureGrid{.rows = 1024, .columns = 1, .unit_px = 14}));
  // 10.49 x 1.5 units: scaled down to 19 tokens, the longer side does not become 11.
  EXPECT_EQ(grid_of({.width_px = 150, .height_px = 1049},
                    {.patch_px = 100, .merge = 1, .max_patches = 19}),
            (PictureGrid{.rows = 10, .columns = 1, .unit_px = 100}));
}

RC_GTEST_PROP(PictureGridProperty, FitsAndKeepsProportionsWithinACell, ()) {
  const PictureRules rules = any_rules();
  const PictureSize size = any_size();
  const PictureGrid grid = grid_of(size, rules);
  RC_ASSERT(grid.unit_px == rules.patch_px * rules.merge);
  RC_ASSERT(grid.rows >= 1U && grid.columns >= 1U);
  RC_ASSERT(grid.tokens() * rules.merge * rules.merge <= rules.max_patches);
  const double height = static_cast<double>(size.height_px) / grid.unit_px;
  const double width = static_cast<double>(size.width_px) / grid.unit_px;
  const double max_tokens = static_cast<double>(rules.max_patches) / (rules.merge * rules.merge);
  // Rounding down and up may just fit where what is rounded does not, and the other way round.
  const double rounded =
      std::max(1.0, std::floor(height + 0.5)) * std::max(1.0, std::floor(width + 0.5));
  const double scale =
      rounded <= max_tokens ? 1.0 : std::min(1.0, std::sqrt(max_tokens / (height * width)));
  // A side that is less than a cell is raised to one, and the other may have to give way.
  if (scale * height >= 1) RC_ASSERT(std::abs(grid.columns - scale * width) <= 1);
  if (scale * width >= 1) RC_ASSERT(std::abs(grid.rows - scale * height) <= 1);
}

RC_GTEST_PROP(PictureGridProperty, MorePatchesNeverMakeItSmaller, ()) {
  PictureRules rules = any_rules();
  const PictureSize size = any_size();
  const PictureGrid fewer = grid_of(size, rules);
  rules.max_patches += *rc::gen::inRange<std::uint32_t>(0, 100);
  const PictureGrid more = grid_of(size, rules);
  RC_ASSERT(fewer.tokens() <= more.tokens());
}

RC_GTEST_PROP(PictureGridProperty, OfTheTransposedPictureIsTransposed, ()) {
  const PictureRules rules = any_rules();
  const PictureSize size = any_size();
  const PictureGrid grid = grid_of(size, rules);
  const PictureGrid transposed =
      grid_of({.width_px = size.height_px, .height_px = size.width_px}, rules);
  RC_ASSERT(grid.rows == transposed.columns);
  RC_ASSERT(grid.columns == transposed.rows);
}

}  // namespace
}  // namespace batchloom::sources
