// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/picture_testing.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

// After <cstdio>, which it needs.
#include <jpeglib.h>

#include "batchloom/base/check.h"

namespace batchloom::sources {
namespace {

int png_colour(std::uint32_t channels) {
  constexpr int kColours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
  return kColours[channels - 1];
}

/// The first coefficient of all components, then each other one of each by itself.
std::vector<jpeg_scan_info> one_scan_for_each_coefficient() {
  std::vector<jpeg_scan_info> scans = {
      {.comps_in_scan = 3, .component_index = {0, 1, 2}, .Ss = 0, .Se = 0, .Ah = 0, .Al = 0}};
  for (int component = 0; component < 3; ++component) {
    for (int k = 1; k < DCTSIZE2; ++k) {
      scans.push_back(
          {.comps_in_scan = 1, .component_index = {component}, .Ss = k, .Se = k, .Ah = 0, .Al = 0});
    }
  }
  return scans;
}

}  // namespace

Bytes fixture_picture(const std::string& name) {
  std::ifstream file(std::filesystem::path(BATCHLOOM_FIXTURES) / "pictures" / name,
                     std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return to_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
}

Bytes png_of(const PngPixels& pixels, bool interlaced) {
  Bytes encoded;
  png_structp png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr,
      [](png_structp, png_const_charp message) { BL_CHECK(false, message); }, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto append = [](png_structp of, png_bytep data, std::size_t size) {
    const ByteSpan bytes = std::as_bytes(std::span(data, size));
    auto& into = *static_cast<Bytes*>(png_get_io_ptr(of));
    into.insert(into.end(), bytes.begin(), bytes.end());
  };
  png_set_write_fn(png, &encoded, append, [](png_structp) {});
  png_set_IHDR(png, info, pixels.size.width_px, pixels.size.height_px,
               static_cast<int>(pixels.bits), png_colour(pixels.channels),
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  png_write_info(png, info);
  const std::size_t row_bytes =
      std::size_t{pixels.size.width_px} * pixels.channels * pixels.bits / 8;
  BL_CHECK(pixels.samples.size() == row_bytes * pixels.size.height_px, "samples of another size");
  for (int pass = png_set_interlace_handling(png); pass > 0; --pass) {
    for (std::size_t y = 0; y < pixels.size.height_px; ++y) {
      png_write_row(png, reinterpret_cast<png_const_bytep>(pixels.samples.data() + y * row_bytes));
    }
  }
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return encoded;
}

Bytes jpeg_of(const PictureSize& size, ByteSpan samples, const JpegKind& kind) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* data = nullptr;
  unsigned long data_bytes = 0;
  jpeg_mem_dest(&jpeg, &data, &data_bytes);
  jpeg.image_width = size.width_px;
  jpeg.image_height = size.height_px;
  jpeg.input_components = static_cast<int>(kind.channels);
  jpeg.in_color_space = kind.channels == 1   ? JCS_GRAYSCALE
                        : kind.channels == 3 ? JCS_RGB
                                             : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  if (kind.ycck) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  if (kind.channels == 4) jpeg.write_Adobe_marker = kind.adobe ? TRUE : FALSE;
  jpeg_set_quality(&jpeg, 100, TRUE);
  for (int i = 0; i < jpeg.num_components; ++i) {
    jpeg.comp_info[i].h_samp_factor = 1;
    jpeg.comp_info[i].v_samp_factor = 1;
  }
  const std::vector<jpeg_scan_info> scans = one_scan_for_each_coefficient();
  if (kind.many_scans) {
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&jpeg, TRUE);
  const std::size_t row_bytes = std::size_t{size.width_px} * kind.channels;
  BL_CHECK(samples.size() == row_bytes * size.height_px, "samples of another size");
  for (std::size_t y = 0; y < size.height_px; ++y) {
    auto* row = reinterpret_cast<JSAMPROW>(const_cast<std::byte*>(&samples[y * row_bytes]));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const ByteSpan made = std::as_bytes(std::span(data, data_bytes));
  Bytes encoded(made.begin(), made.end());
  std::free(data);
  return encoded;
}

}  // namespace batchloom::sources
