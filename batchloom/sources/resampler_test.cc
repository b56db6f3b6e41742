// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/resampler.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "batchloom/base/random.h"

namespace batchloom::sources {
namespace {

using testing::ElementsAre;

/// Pixels of 3 bytes, in rows.
struct RgbPicture {
  PictureSize size;
  Bytes bytes;

  unsigned at(std::uint32_t x, std::uint32_t y, std::uint32_t colour) const {
    return std::to_integer<unsigned>(bytes[(std::size_t{y} * size.width_px + x) * 3 + colour]);
  }
  friend bool operator==(const RgbPicture&, const RgbPicture&) = default;
};

RgbPicture resampled_picture(const RgbPicture& from, const PictureSize& to) {
  RgbPicture out{.size = to, .bytes = Bytes(std::size_t{3} * to.width_px * to.height_px)};
  Resampler resampler(from.size, to, out.bytes);
  const std::size_t row_bytes = std::size_t{3} * from.size.width_px;
  for (std::size_t y = 0; y < from.size.height_px; ++y) {
    resampler.add(std::span(from.bytes).subspan(y * row_bytes, row_bytes));
  }
  return out;
}

/// `colour(x, y, c)` of each pixel.
template <class Colour>
RgbPicture painted_picture(const PictureSize& size, const Colour& colour) {
  RgbPicture picture{.size = size, .bytes = {}};
  for (std::uint32_t y = 0; y < size.height_px; ++y) {
    for (std::uint32_t x = 0; x < size.width_px; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        picture.bytes.push_back(static_cast<std::byte>(colour(x, y, c)));
      }
    }
  }
  return picture;
}

PictureSize any_small_size() {
  return {.width_px = *rc::gen::inRange<std::uint32_t>(1, 20),
          .height_px = *rc::gen::inRange<std::uint32_t>(1, 20)};
}

RgbPicture random_picture(const PictureSize& size) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  return painted_picture(size, [&](auto, auto, auto) { return random.below(256); });
}

/// The reds of a row of `to` pixels made of `reds`; since the axes are alike, of a column too.
std::vector<unsigned> resampled_row(const std::vector<unsigned>& reds, std::uint32_t to) {
  const auto from = static_cast<std::uint32_t>(reds.size());
  const RgbPicture row = resampled_picture(
      painted_picture({.width_px = from, .height_px = 1},
                      [&](auto x, auto, auto c) { return c == 0 ? reds[x] : 9 * c; }),
      {.width_px = to, .height_px = 1});
  const RgbPicture column = resampled_picture(
      painted_picture({.width_px = 1, .height_px = from},
                      [&](auto, auto y, auto c) { return c == 0 ? reds[y] : 9 * c; }),
      {.width_px = 1, .height_px = to});
  EXPECT_EQ(row.bytes, column.bytes);
  std::vector<unsigned> result;
  for (std::uint32_t x = 0; x < to; ++x) {
    result.push_back(row.at(x, 0, 0));
    EXPECT_EQ(row.at(x, 0, 1), 9U);
    EXPECT_EQ(row.at(x, 0, 2), 18U);
  }
  return result;
}

TEST(ResamplerTest, ShrinksToTheAverageOfAreas) {
  EXPECT_THAT(resampled_row({0, 10, 200, 203}, 2), ElementsAre(5, 202));  // 201.5 goes up.
  EXPECT_THAT(resampled_row({0, 90, 240}, 2), ElementsAre(30, 190));
  EXPECT_THAT(resampled_row({0, 1, 0, 0}, 1), ElementsAre(0));
  EXPECT_THAT(resampled_row({0, 2, 0, 0}, 1), ElementsAre(1));
  EXPECT_THAT(resampled_row({100, 200, 50, 25, 75}, 3), ElementsAre(140, 75, 55));
}

TEST(ResamplerTest, GrowsAlongLinesBetweenCentres) {
  EXPECT_THAT(resampled_row({7}, 3), ElementsAre(7, 7, 7));
  EXPECT_THAT(resampled_row({0, 100}, 4), ElementsAre(0, 25, 75, 100));
  EXPECT_THAT(resampled_row({0, 80, 160}, 4), ElementsAre(0, 50, 110, 160));
  EXPECT_THAT(resampled_row({0, 101}, 3), ElementsAre(0, 51, 101));
}

TEST(ResamplerTest, RoundsOnceForBothAxes) {
  const RgbPicture corner =
      painted_picture({.width_px = 2, .height_px = 2},
                      [](auto x, auto y, auto) { return x == 0 && y == 0 ? 2 : 0; });
  // 2/4 rounds up to 1; rounded after each axis it would be 1 as well, but 1/4 would be 1, too.
  EXPECT_EQ(resampled_picture(corner, {.width_px = 1, .height_px = 1}).at(0, 0, 0), 1U);
  const RgbPicture faint =
      painted_picture({.width_px = 2, .height_px = 2},
                      [](auto x, auto y, auto) { return x == 0 && y == 0 ? 1 : 0; });
  EXPECT_EQ(resampled_picture(faint, {.width_px = 1, .height_px = 1}).at(0, 0, 0), 0U);
}

TEST(ResamplerTest, ItsSumsFitAtTheLargestSides) {
  const Bytes white_row(std::size_t{3} * kMaxPictureSidePx, std::byte{255});
  for (const std::uint32_t width : {1U, kMaxPictureSidePx - 1, kMaxResampledSidePx}) {
    Bytes out(std::size_t{3} * width);
    Resampler resampler({.width_px = kMaxPictureSidePx, .height_px = 2},
                        {.width_px = width, .height_px = 1}, out);
    resampler.add(white_row);
    resampler.add(white_row);
    EXPECT_EQ(std::ranges::count(out, std::byte{255}), std::ssize(out)) << width;
  }
}

/// Divisors on both sides of the one from which it divides.
TEST(ResamplerTest, RoundsHalvesUpWhateverTheDivisor) {
  constexpr std::uint32_t kWidth = 4096;
  for (const std::uint32_t height : {2047U, 2048U, 2049U}) {
    Bytes out(3);
    Resampler resampler({.width_px = kWidth, .height_px = height}, {.width_px = 1, .height_px = 1},
                        out);
    Bytes row(std::size_t{3} * kWidth);
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        // Half of them, and one less than that.
        const bool one = 2 * (y * kWidth + x) < height * kWidth;
        row[3 * x] = std::byte{255};
        row[3 * x + 1] = std::byte{one};
        row[3 * x + 2] = std::byte{one && y + x > 0};
      }
      resampler.add(row);
    }
    EXPECT_THAT(out, ElementsAre(std::byte{255}, std::byte{1}, std::byte{0})) << height;
  }
}

RC_GTEST_PROP(ResamplerProperty, AConstantPictureStaysConstant, ()) {
  const auto red = *rc::gen::inRange<unsigned>(0, 256);
  const auto paint = [&](auto, auto, unsigned c) { return (red + 100 * c) % 256; };
  const PictureSize to = any_small_size();
  RC_ASSERT(resampled_picture(painted_picture(any_small_size(), paint), to) ==
            painted_picture(to, paint));
}

RC_GTEST_PROP(ResamplerProperty, EqualSizesChangeNothing, ()) {
  const RgbPicture picture = random_picture(any_small_size());
  RC_ASSERT(resampled_picture(picture, picture.size) == picture);
}

/// Of one axis, in floating point, by its definition: how much input `x` counts in output `i`.
double count_of_input(std::uint32_t x, std::uint32_t i, double from, double to) {
  if (to <= from) {
    const double begin = std::max<double>(x, i * from / to);
    return std::max(0.0, std::min(x + 1.0, (i + 1) * from / to) - begin) * to / from;
  }
  const double centre = std::clamp((i + 0.5) * from / to - 0.5, 0.0, from - 1);
  return std::max(0.0, 1 - std::abs(centre - x));
}

RC_GTEST_PROP(ResamplerProperty, IsWhatItsDefinitionSays, ()) {
  const RgbPicture picture = random_picture(any_small_size());
  const RgbPicture out = resampled_picture(picture, any_small_size());
  const auto [from_width, from_height] = picture.size;
  const auto [to_width, to_height] = out.size;
  for (std::uint32_t i = 0; i < to_width; ++i) {
    for (std::uint32_t j = 0; j < to_height; ++j) {
      double blue = 0;
      for (std::uint32_t x = 0; x < from_width; ++x) {
        for (std::uint32_t y = 0; y < from_height; ++y) {
          blue += picture.at(x, y, 2) * count_of_input(x, i, from_width, to_width) *
                  count_of_input(y, j, from_height, to_height);
        }
      }
      RC_ASSERT(std::abs(blue - out.at(i, j, 2)) <= 0.5 + 1e-9);
    }
  }
}

RC_GTEST_PROP(ResamplerProperty, CommutesWithMirrorsAndTransposition, ()) {
  const auto transposed = [](const RgbPicture& of) {
    return painted_picture({.width_px = of.size.height_px, .height_px = of.size.width_px},
                           [&](auto x, auto y, auto c) { return of.at(y, x, c); });
  };
  const auto mirrored = [](const RgbPicture& of) {
    return painted_picture(
        of.size, [&](auto x, auto y, auto c) { return of.at(of.size.width_px - 1 - x, y, c); });
  };
  const RgbPicture picture = random_picture(any_small_size());
  const PictureSize to = any_small_size();
  const RgbPicture out = resampled_picture(picture, to);
  RC_ASSERT(resampled_picture(mirrored(picture), to) == mirrored(out));
  RC_ASSERT(resampled_picture(transposed(picture), {.width_px = to.height_px,
                                                    .height_px = to.width_px}) == transposed(out));
}

RC_GTEST_PROP(ResamplerProperty, KeepsTheMeanWhereItShrinks, ()) {
  const RgbPicture picture = random_picture(any_small_size());
  const PictureSize to{
      .width_px = *rc::gen::inRange<std::uint32_t>(1, picture.size.width_px + 1),
      .height_px = *rc::gen::inRange<std::uint32_t>(1, picture.size.height_px + 1)};
  const auto mean = [](const RgbPicture& of) {
    double sum = 0;
    for (const std::byte byte : of.bytes) sum += std::to_integer<int>(byte);
    return sum / static_cast<double>(of.bytes.size());
  };
  RC_ASSERT(std::abs(mean(resampled_picture(picture, to)) - mean(picture)) <= 0.5 + 1e-9);
}

}  // namespace
}  // namespace batchloom::sources
