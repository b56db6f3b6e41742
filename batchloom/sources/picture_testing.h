// SPDX-License-Identifier: Apache-2.0
// Pictures for tests: of other programs, and made here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/picture.h"

namespace batchloom::sources {

/// Of tests/fixtures/pictures, which write_pictures.py makes.
Bytes fixture_picture(const std::string& name);

/// A PNG's pixels as it stores them: `samples` are rows of width * channels values, each of 8 bits
/// or, high byte first, of 16.
struct PngPixels {
  PictureSize size;
  std::uint32_t channels = 3;  ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
  std::uint32_t bits = 8;
  Bytes samples;
};
Bytes png_of(const PngPixels& pixels, bool interlaced = false);

/// How a JPEG is made of samples; quality 100 and no subsampling, so that little is lost.
struct JpegKind {
  std::uint32_t channels = 3;  ///< 1 grey, 3 RGB, 4 CMYK.
  bool ycck = false;           ///< Of 4 channels: stored as YCCK.
  bool adobe = true;           ///< Of 4 channels: with Adobe's marker, by which 255 is no ink.
  bool many_scans = false;     ///< Of 3 channels: progressive, and a scan for each coefficient.
};
Bytes jpeg_of(const PictureSize& size, ByteSpan samples, const JpegKind& kind = {});

}  // namespace batchloom::sources
