// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/picture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/sources/picture_testing.h"

namespace batchloom::sources {
namespace {

using testing::HasSubstr;

/// A grid of exactly this size.
PictureGrid pixels_of(const PictureSize& size) {
  return {.rows = size.height_px, .columns = size.width_px, .unit_px = 1};
}

Result<Bytes> rgb_of(ByteSpan encoded, const PictureGrid& grid) {
  Bytes out(grid.bytes());
  BL_RETURN_IF_ERROR(decode_picture(encoded, grid, out));
  return out;
}

/// Without resampling.
Result<Bytes> rgb_of(ByteSpan encoded) {
  BL_ASSIGN_OR_RETURN(const PictureSize size, picture_size(encoded));
  return rgb_of(encoded, pixels_of(size));
}

std::string picture_refusal(ByteSpan encoded) {
  const Status size = picture_size(encoded).status();
  EXPECT_TRUE(size.is(ErrorKind::kCorruption)) << size.to_string();
  Bytes out(3);
  const Status pixel = decode_picture(encoded, {.rows = 1, .columns = 1, .unit_px = 1}, out);
  EXPECT_EQ(pixel.to_string(), size.to_string());
  return std::string(size.message());
}

Bytes random_samples(std::size_t bytes, std::uint64_t seed = 1) {
  Random random(seed);
  Bytes result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random.below(256));
  return result;
}

Bytes samples_of(std::initializer_list<unsigned> values) {
  Bytes result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

class FixturePictureTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(AllKinds, FixturePictureTest,
                         testing::Values("rgb.png", "rgba.png", "grey.png", "grey_alpha.png",
                                         "bits.png", "grey16.png", "colour_key.png", "palette1.png",
                                         "palette2.png", "palette4.png", "palette8.png",
                                         "palette_short.png", "444.jpg", "422.jpg", "420.jpg",
                                         "progressive.jpg", "restarts.jpg", "turned.jpg", "rgb.jpg",
                                         "grey.jpg", "cmyk.jpg"),
                         [](const auto& name) {
                           const std::size_t dot = name.param.find('.');
                           return name.param.substr(dot + 1) + "_" + name.param.substr(0, dot);
                         });

TEST_P(FixturePictureTest, BecomesThePixelsThatItsWriterSays) {
  const Bytes encoded = fixture_picture(GetParam());
  EXPECT_EQ(picture_size(encoded).value(), (PictureSize{.width_px = 21, .height_px = 13}));
  EXPECT_TRUE(rgb_of(encoded).value() == fixture_picture(GetParam() + ".rgb"));
}

TEST_P(FixturePictureTest, IsRefusedWhereverItIsCut) {
  const Bytes whole = fixture_picture(GetParam());
  const PictureGrid grid{.rows = 13, .columns = 21, .unit_px = 1};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ByteSpan cut = std::span(whole).first(size);
    EXPECT_TRUE(rgb_of(cut, grid).is(ErrorKind::kCorruption)) << size;
    const auto header = picture_size(cut);
    EXPECT_TRUE(header.is(ErrorKind::kCorruption) || header.is_ok()) << size;
  }
}

/// The checksums of a PNG find every changed bit; a JPEG has none.
TEST_P(FixturePictureTest, WithAChangedByteIsRefusedOrDecoded) {
  const Bytes whole = fixture_picture(GetParam());
  const PictureGrid grid{.rows = 13, .columns = 21, .unit_px = 1};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x10U, 0x80U, 0xffU}) {
      Bytes changed = whole;
      changed[at] ^= static_cast<std::byte>(flip);
      const auto pixels = rgb_of(changed, grid);
      if (GetParam().ends_with(".png")) {
        EXPECT_TRUE(pixels.is(ErrorKind::kCorruption)) << at << " ^ " << flip;
      } else {
        EXPECT_TRUE(pixels.is_ok() || pixels.is(ErrorKind::kCorruption)) << at << " ^ " << flip;
      }
    }
  }
}

TEST(PictureTest, OfOtherFormatsIsRefusedByName) {
  const auto of_text = [](std::string_view text) { return picture_refusal(as_bytes(text)); };
  EXPECT_THAT(of_text("GIF89a\1\0\1"), HasSubstr("a GIF"));
  EXPECT_THAT(of_text("RIFF....WEBPVP8 "), HasSubstr("a WebP"));
  EXPECT_THAT(of_text("....ftypavif...."), HasSubstr("an AVIF"));
  EXPECT_THAT(of_text("....ftypheic...."), HasSubstr("a HEIC"));
  EXPECT_THAT(of_text(std::string_view("II*\0\1", 5)), HasSubstr("a TIFF"));
  EXPECT_THAT(of_text("<!DOCTYPE html>"), HasSubstr("HTML"));
  EXPECT_THAT(of_text("hello"), HasSubstr("begins with 68 65 6c 6c 6f"));
  EXPECT_THAT(of_text(""), HasSubstr("0 bytes"));
  EXPECT_THAT(of_text("\x89PNG"), HasSubstr("cut to 4 bytes"));
  EXPECT_THAT(of_text("\xff\xd8"), HasSubstr("cut to 2 bytes"));
}

/// An IHDR with its right checksum, of an RGB picture.
Bytes png_header(std::uint32_t width, std::uint32_t height, std::uint32_t crc) {
  Bytes header = to_bytes("\x89PNG\r\n\x1a\n");
  const auto append = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      header.push_back(static_cast<std::byte>(value >> shift));
    }
  };
  append(13);
  for (const char c : std::string_view("IHDR")) header.push_back(static_cast<std::byte>(c));
  append(width);
  append(height);
  for (const Bytes& rest = samples_of({8, 2, 0, 0, 0}); const std::byte byte : rest) {
    header.push_back(byte);
  }
  append(crc);
  append(0);  // An IDAT of 0 bytes, which ends the header.
  for (const char c : std::string_view("IDAT")) header.push_back(static_cast<std::byte>(c));
  append(0x35af061e);
  return header;
}

/// A frame header of three components, and the scan that ends a header.
Bytes jpeg_header(unsigned width, unsigned height) {
  return samples_of({0xff,       0xd8,        0xff, 0xc0, 0,    17, 8, height >> 8, height & 255,
                     width >> 8, width & 255, 3,    1,    0x11, 0,  2, 0x11,        0,
                     3,          0x11,        0,  //
                     0xff,       0xda,        0,    12,   3,    1,  0, 2,           0,
                     3,          0,           0,    63,   0});
}

TEST(PictureTest, ADecompressionBombIsRefusedByItsHeader) {
  EXPECT_THAT(picture_refusal(jpeg_header(65'500, 65'500)), HasSubstr("65500 x 65500"));
  EXPECT_THAT(picture_refusal(jpeg_header(8193, 8192)), HasSubstr("8193 x 8192"));
  EXPECT_EQ(picture_size(jpeg_header(8192, 8192)).value().width_px, 8192U);
  EXPECT_THAT(picture_refusal(png_header(0x7fffffff, 0x7fffffff, 0x9bab9c31)),
              HasSubstr("2147483647 x 2147483647"));
  EXPECT_THAT(picture_refusal(png_header(65'536, 1, 0xe410748f)), HasSubstr("65536 x 1"));
  EXPECT_EQ(picture_size(png_header(65'535, 1, 0x84c97c5e)).value().width_px, 65'535U);
}

TEST(PictureTest, WithoutPixelsIsRefused) {
  EXPECT_THAT(picture_refusal(jpeg_header(0, 4)), HasSubstr("JPEG"));
  EXPECT_THAT(picture_refusal(jpeg_header(4, 0)), HasSubstr("JPEG"));
  EXPECT_THAT(picture_refusal(png_header(0, 4, 0x2f78a953)), HasSubstr("PNG"));
}

TEST(PictureTest, InterlacedOrNotHasTheSamePixels) {
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U}) {
    for (const std::uint32_t bits : {8U, 16U}) {
      for (const PictureSize& size : {PictureSize{1, 1}, PictureSize{3, 2}, PictureSize{17, 23}}) {
        const PngPixels pixels{.size = size,
                               .channels = channels,
                               .bits = bits,
                               .samples = random_samples(std::size_t{channels} * bits / 8 *
                                                         size.width_px * size.height_px)};
        EXPECT_TRUE(rgb_of(png_of(pixels, true)).value() == rgb_of(png_of(pixels)).value());
      }
    }
  }
}

TEST(PictureTest, SixteenBitsGoToTheNearestOfEight) {
  const PngPixels pixels{.size = {.width_px = 2, .height_px = 1},
                         .channels = 3,
                         .bits = 16,
                         .samples = samples_of({0, 128, 0, 129, 1, 1,  //
                                                255, 255, 128, 0, 127, 127})};
  EXPECT_EQ(rgb_of(png_of(pixels)).value(), samples_of({0, 1, 1, 255, 128, 127}));
}

TEST(PictureTest, AlphaLiesOverWhite) {
  const PngPixels pixels{.size = {.width_px = 3, .height_px = 1},
                         .channels = 4,
                         .bits = 8,
                         .samples = samples_of({10, 20, 30, 0, 10, 20, 30, 255, 0, 100, 255, 128})};
  // 255 * 127 / 255 = 127; (100 * 128 + 255 * 127) / 255 = 177.2.
  EXPECT_EQ(rgb_of(png_of(pixels)).value(), samples_of({255, 255, 255, 10, 20, 30, 127, 177, 255}));
}

std::vector<int> rounded_to(const Bytes& bytes, int step) {
  std::vector<int> result;
  for (const std::byte byte : bytes) {
    result.push_back((std::to_integer<int>(byte) + step / 2) / step * step);
  }
  return result;
}

TEST(PictureTest, InksAreTakenOffWhitePaper) {
  const PictureSize size{.width_px = 8, .height_px = 8};
  Bytes left_white;  // Of each ink, as Adobe has it: how much of the paper stays.
  Bytes ink;
  for (int i = 0; i < 64; ++i) {
    for (const unsigned white : {200U, 100U, 250U, 204U}) {
      left_white.push_back(static_cast<std::byte>(white));
      ink.push_back(static_cast<std::byte>(255 - white));
    }
  }
  for (const bool ycck : {false, true}) {
    const Bytes adobe = rgb_of(jpeg_of(size, left_white, {.channels = 4, .ycck = ycck})).value();
    // 200 * 204 / 255 = 160, and so on.
    EXPECT_THAT(rounded_to(Bytes(adobe.begin(), adobe.begin() + 3), 4),
                testing::ElementsAre(160, 80, 200))
        << ycck;
  }
  const Bytes plain = rgb_of(jpeg_of(size, ink, {.channels = 4, .adobe = false})).value();
  EXPECT_THAT(rounded_to(Bytes(plain.begin(), plain.begin() + 3), 4),
              testing::ElementsAre(160, 80, 200));
}

TEST(PictureTest, AJpegFarLargerThanItsGridIsDecodedAtAPartOfItsSize) {
  const Bytes encoded = fixture_picture("large.jpg");
  for (const PictureSize& size :
       {PictureSize{64, 48}, PictureSize{32, 24}, PictureSize{16, 12}, PictureSize{8, 6}}) {
    const std::string name = fmt::format("large.jpg.{}x{}.rgb", size.width_px, size.height_px);
    EXPECT_TRUE(rgb_of(encoded, pixels_of(size)).value() == fixture_picture(name)) << name;
  }
}

/// Pinned: what a pipeline draws may not change with the host or the version of a library.
TEST(PictureTest, GridsOfAnySizeHaveThePixelsThatTheyAlwaysHad) {
  const Bytes encoded = fixture_picture("large.jpg");
  const auto digest = [&](std::uint32_t width, std::uint32_t height) {
    return xxh3_64(rgb_of(encoded, pixels_of({width, height})).value());
  };
  EXPECT_EQ(digest(64, 48), 0x8c60bfd532cec2abU);
  EXPECT_EQ(digest(63, 47), 0x7e914a78785dc77bU);
  EXPECT_EQ(digest(33, 24), 0x6b28de2e0bce5265U);
  EXPECT_EQ(digest(28, 14), 0x490d44179c2ae56fU);
  EXPECT_EQ(digest(1, 1), 0xd0a1471b7000cfccU);
  EXPECT_EQ(digest(70, 20), 0xf97f435351dc345eU);
  EXPECT_EQ(digest(100, 80), 0x44582e1c3d78eeeU);
}

TEST(PictureTest, AJpegIsRefusedWhereItsDataDoNotAddUp) {
  const Bytes good = fixture_picture("444.jpg");
  Bytes extra = good;
  extra.insert(extra.end() - 2, 20, std::byte{0x55});
  EXPECT_THAT(rgb_of(extra).status().message(), HasSubstr("extraneous"));
  Bytes after_its_end = good;
  after_its_end.insert(after_its_end.end(), 100, std::byte{0x55});
  EXPECT_TRUE(rgb_of(after_its_end).value() == rgb_of(good).value());
  Bytes other_jfif = good;
  ASSERT_EQ(other_jfif[11], std::byte{1});
  other_jfif[11] = std::byte{2};
  EXPECT_TRUE(rgb_of(other_jfif).value() == rgb_of(good).value());
}

TEST(PictureTest, AJpegOfTooManyScansIsRefused) {
  const PictureSize size{.width_px = 16, .height_px = 16};
  const Bytes samples = random_samples(16 * 16 * 3);
  EXPECT_TRUE(rgb_of(jpeg_of(size, samples)).is_ok());
  const Bytes slow = jpeg_of(size, samples, {.many_scans = true});
  EXPECT_TRUE(picture_size(slow).is_ok());
  EXPECT_THAT(rgb_of(slow).status().message(), HasSubstr("more than 100 scans"));
}

TEST(PictureTest, AGridThatDoesNotGoWithItsBytesIsInvalid) {
  const Bytes encoded = fixture_picture("rgb.png");
  Bytes out(3 * 4);
  const auto attempt = [&](const PictureGrid& grid) {
    return decode_picture(encoded, grid, out).kind();
  };
  EXPECT_EQ(attempt({.rows = 2, .columns = 1, .unit_px = 1}), ErrorKind::kInvalid);
  EXPECT_EQ(attempt({.rows = 0, .columns = 1, .unit_px = 1}), ErrorKind::kInvalid);
  EXPECT_EQ(attempt({.rows = 1, .columns = 1 << 20, .unit_px = 8}), ErrorKind::kInvalid);
}

RC_GTEST_PROP(PictureProperty, APngOfAnySizeIsWhatWasWritten, ()) {
  const PictureSize size{.width_px = *rc::gen::inRange<std::uint32_t>(1, 40),
                         .height_px = *rc::gen::inRange<std::uint32_t>(1, 40)};
  const PngPixels pixels{.size = size,
                         .samples = random_samples(std::size_t{3} * size.width_px * size.height_px,
                                                   *rc::gen::arbitrary<std::uint64_t>())};
  const Bytes encoded = png_of(pixels, *rc::gen::arbitrary<bool>());
  RC_ASSERT(picture_size(encoded).value() == size);
  RC_ASSERT(rgb_of(encoded).value() == pixels.samples);
}

RC_GTEST_PROP(PictureProperty, AJpegOfAnySizeIsNearlyWhatWasWritten, ()) {
  const PictureSize size{.width_px = *rc::gen::inRange<std::uint32_t>(1, 40),
                         .height_px = *rc::gen::inRange<std::uint32_t>(1, 40)};
  const Bytes samples = random_samples(std::size_t{3} * size.width_px * size.height_px,
                                       *rc::gen::arbitrary<std::uint64_t>());
  const Bytes encoded = jpeg_of(size, samples);
  RC_ASSERT(picture_size(encoded).value() == size);
  const Bytes pixels = rgb_of(encoded).value();
  RC_ASSERT(pixels.size() == samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const int off = std::to_integer<int>(pixels[i]) - std::to_integer<int>(samples[i]);
    RC_ASSERT(std::abs(off) <= 8);
  }
}

}  // namespace
}  // namespace batchloom::sources
