// SPDX-License-Identifier: Apache-2.0
// libpng, which is given no gamma, so that it leaves values as they are stored, and is told to pass
// over every chunk that is not needed for the pixels.
#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <type_traits>

#include "batchloom/base/check.h"
#include "batchloom/base/raw_buffer.h"
#include "batchloom/sources/picture_decoder.h"

namespace batchloom::sources {
namespace {

class PngDecoder final : public PictureDecoder {
 public:
  explicit PngDecoder(ByteSpan encoded) : rest_(encoded) {}
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  Status open();
  PictureSize size() const override { return size_; }
  Result<PictureSize> start(const PictureSize& target) override;
  Status read(std::span<std::byte> row) override;
  Status finish() override;

 private:
  static void on_error(png_structp png, png_const_charp message);
  static void on_warning(png_structp, png_const_charp) {}  // Nothing that changes pixels.
  static void on_read(png_structp png, png_bytep out, std::size_t size);

  template <class Call>
  Status guarded(Call call);
  void read_header();
  Status read_interlaced(int passes);

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf caller_{};
  std::array<char, 128> message_{};
  ByteSpan rest_;
  PictureSize size_;
  std::size_t channels_ = 0;
  std::size_t next_row_ = 0;
  Bytes row_;    // With its alpha, where there is one.
  Bytes whole_;  // All rows of an interlaced picture.
};

void PngDecoder::on_error(png_structp png, png_const_charp message) {
  auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::strncpy(self.message_.data(), message, self.message_.size() - 1);
  std::longjmp(self.caller_, 1);
}

void PngDecoder::on_read(png_structp png, png_bytep out, std::size_t size) {
  auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (size > self.rest_.size()) png_error(png, "it is cut");
  std::memcpy(out, self.rest_.data(), size);
  self.rest_ = self.rest_.subspan(size);
}

/// Calls libpng by `call`: see PictureDecoder.
template <class Call>
Status PngDecoder::guarded(Call call) {
  static_assert(std::is_trivially_destructible_v<Call>);
  if (setjmp(caller_) != 0) return Status::corruption(fmt::format("PNG: {}", message_.data()));
  call();
  return Status::ok();
}

Status PngDecoder::open() {
  BL_RETURN_IF_ERROR(guarded([this] {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ != nullptr) read_header();
  }));
  if (info_ == nullptr) return Status::exhausted("no memory to decode a PNG");
  return check_picture_size(size_.width_px, size_.height_px);
}

void PngDecoder::read_header() {
  png_set_read_fn(png_, this, on_read);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // They are check_picture_size's.
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);  // Not only of pixels.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png_, info_);
  size_ = {.width_px = png_get_image_width(png_, info_),
           .height_px = png_get_image_height(png_, info_)};
}

Result<PictureSize> PngDecoder::start(const PictureSize&) {
  int passes = 1;
  BL_RETURN_IF_ERROR(guarded([this, &passes] {
    png_set_expand(png_);       // Palettes, fewer than 8 bits, a transparent colour.
    png_set_scale_16(png_);     // To the nearest of 8 bits.
    png_set_gray_to_rgb(png_);  // With or without alpha.
    passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    channels_ = png_get_channels(png_, info_);
  }));
  BL_CHECK(channels_ == 3 || channels_ == 4, "libpng gives neither RGB nor RGBA");
  if (passes > 1) {
    BL_RETURN_IF_ERROR(read_interlaced(passes));
  } else {
    row_.resize(size_.width_px * channels_);
  }
  return size_;
}

/// Each pass adds some pixels to what the passes before it left of a row.
Status PngDecoder::read_interlaced(int passes) {
  const std::size_t row_bytes = size_.width_px * channels_;
  whole_.resize(row_bytes * size_.height_px);
  return guarded([this, passes, row_bytes] {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t y = 0; y < size_.height_px; ++y) {
        png_read_row(png_, reinterpret_cast<png_bytep>(&whole_[y * row_bytes]), nullptr);
      }
    }
  });
}

Status PngDecoder::read(std::span<std::byte> row) {
  BL_CHECK(row.size() == std::size_t{3} * size_.width_px && next_row_ < size_.height_px,
           "a row of another picture");
  const std::byte* decoded = row_.data();
  if (!whole_.empty()) {
    decoded = &whole_[next_row_ * size_.width_px * channels_];
  } else {
    BL_RETURN_IF_ERROR(
        guarded([this] { png_read_row(png_, reinterpret_cast<png_bytep>(row_.data()), nullptr); }));
  }
  ++next_row_;
  if (channels_ == 3) {
    std::memcpy(row.data(), decoded, row.size());
    return Status::ok();
  }
  for (std::size_t x = 0; x < size_.width_px; ++x, decoded += 4) {
    const unsigned alpha = std::to_integer<unsigned>(decoded[3]);
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned over_white =
          std::to_integer<unsigned>(decoded[c]) * alpha + 255 * (255 - alpha);
      row[3 * x + c] = static_cast<std::byte>((over_white + 127) / 255);
    }
  }
  return Status::ok();
}

Status PngDecoder::finish() {
  return guarded([this] { png_read_end(png_, nullptr); });
}

}  // namespace

Result<std::unique_ptr<PictureDecoder>> open_png(ByteSpan encoded) {
  auto decoder = std::make_unique<PngDecoder>(encoded);
  BL_RETURN_IF_ERROR(decoder->open());
  return std::unique_ptr<PictureDecoder>(std::move(decoder));
}

}  // namespace batchloom::sources
