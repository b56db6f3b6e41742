// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "batchloom/sources/picture_decoder.h"
#include "batchloom/sources/resampler.h"

namespace batchloom::sources {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kJpegBegin = "\xff\xd8\xff";
constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n";

/// What stands at a place of files that are often taken for pictures that we read.
struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view name;
};

constexpr auto kOthers = std::to_array<Signature>({
    {0, "GIF8", "a GIF"},
    {8, "WEBP", "a WebP"},
    {4, "ftypavi", "an AVIF"},
    {4, "ftyphei", "a HEIC"},
    {4, "ftypmif1", "a HEIF"},
    {0, "BM", "a BMP"},
    {0, "II*\0"sv, "a TIFF"},
    {0, "MM\0*"sv, "a TIFF"},
    {0, "\xff\x0a", "a JPEG XL"},
    {4, "JXL ", "a JPEG XL"},
    {4, "jP  ", "a JPEG 2000"},
    {0, "%PDF", "a PDF"},
    {0, "\x1f\x8b", "a gzip"},
    {0, "<", "HTML, XML or SVG"},
    {0, "{", "JSON"},
});

Status not_a_picture(std::string_view encoded) {
  if (encoded.empty()) return Status::corruption("a picture of 0 bytes");
  if (kJpegBegin.starts_with(encoded) || kPngBegin.starts_with(encoded)) {
    return Status::corruption(fmt::format("a picture that is cut to {} bytes", encoded.size()));
  }
  for (const Signature& other : kOthers) {
    if (encoded.size() > other.offset && encoded.substr(other.offset).starts_with(other.bytes)) {
      return Status::corruption(
          fmt::format("neither a JPEG nor a PNG: it looks like {}", other.name));
    }
  }
  std::string begin;
  for (const char byte : encoded.substr(0, 8)) {
    begin += fmt::format(" {:02x}", static_cast<unsigned char>(byte));
  }
  return Status::corruption(fmt::format("neither a JPEG nor a PNG: it begins with{}", begin));
}

Result<std::unique_ptr<PictureDecoder>> open_picture(ByteSpan encoded) {
  const std::string_view text = as_text(encoded);
  if (text.starts_with(kJpegBegin)) return open_jpeg(encoded);
  if (text.starts_with(kPngBegin)) return open_png(encoded);
  return not_a_picture(text);
}

Status check_out(const PictureGrid& grid, std::span<std::byte> out) {
  const std::uint64_t width_px = std::uint64_t{grid.columns} * grid.unit_px;
  const std::uint64_t height_px = std::uint64_t{grid.rows} * grid.unit_px;
  if (std::min(width_px, height_px) < 1 || std::max(width_px, height_px) > kMaxResampledSidePx) {
    return Status::invalid(fmt::format("a grid of {} x {} pixels: a side is 1 to {}", width_px,
                                       height_px, kMaxResampledSidePx));
  }
  if (out.size() != grid.bytes()) {
    return Status::invalid(
        fmt::format("{} bytes for the pixels of a grid of {}", out.size(), grid.bytes()));
  }
  return Status::ok();
}

}  // namespace

Status check_picture_size(std::uint64_t width_px, std::uint64_t height_px) {
  if (width_px == 0 || height_px == 0) {
    return Status::corruption(
        fmt::format("a picture without pixels: {} x {}", width_px, height_px));
  }
  if (std::max(width_px, height_px) > kMaxPictureSidePx ||
      width_px * height_px > kMaxPicturePixels) {
    return Status::corruption(
        fmt::format("a picture of {} x {} pixels: at most {} are read, and {} along a side",
                    width_px, height_px, kMaxPicturePixels, kMaxPictureSidePx));
  }
  return Status::ok();
}

Result<PictureSize> picture_size(ByteSpan encoded) {
  BL_ASSIGN_OR_RETURN(const auto decoder, open_picture(encoded));
  return decoder->size();
}

Status decode_picture(ByteSpan encoded, const PictureGrid& grid, std::span<std::byte> out) {
  BL_RETURN_IF_ERROR(check_out(grid, out));
  BL_ASSIGN_OR_RETURN(const auto decoder, open_picture(encoded));
  BL_ASSIGN_OR_RETURN(const PictureSize size, decoder->start(grid.size()));
  Resampler resampler(size, grid.size(), out);
  Bytes row(std::size_t{3} * size.width_px);
  for (std::uint32_t y = 0; y < size.height_px; ++y) {
    BL_RETURN_IF_ERROR(decoder->read(row));
    resampler.add(row);
  }
  return decoder->finish();
}

}  // namespace batchloom::sources
