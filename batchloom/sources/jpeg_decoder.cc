// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo, set up so that every host gives the same pixels: the slow, exact integer DCT
// (JDCT_ISLOW) and "fancy" upsampling of chroma, which its SIMD and its C code compute alike, and
// no smoothing of blocks, which versions do differently.
#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <type_traits>

// After <cstdio>, which they need.
#include <jpeglib.h>
//
#include <jerror.h>

#include "batchloom/base/check.h"
#include "batchloom/sources/picture_decoder.h"

namespace batchloom::sources {
namespace {

/// A progressive picture has about ten scans. Each costs a pass over all of it, and can be written
/// in a few dozen bytes.
constexpr int kMaxScans = 100;

/// What libjpeg calls when something is wrong, and where it returns to then.
struct JpegErrors {
  jpeg_error_mgr manager;  // First: libjpeg's pointer to it is one to this.
  std::jmp_buf caller;
  std::array<char, JMSG_LENGTH_MAX> message;
  bool too_many_scans;
};

JpegErrors& errors_of(j_common_ptr jpeg) {
  return *reinterpret_cast<JpegErrors*>(jpeg->err);
}

[[noreturn]] void leave_jpeg(j_common_ptr jpeg) {
  JpegErrors& errors = errors_of(jpeg);
  errors.manager.format_message(jpeg, errors.message.data());
  std::longjmp(errors.caller, 1);
}

/// Warnings (of negative level) are complaints about data that libjpeg would make up: an error. But
/// for the version of JFIF, which has nothing to do with pixels.
void on_jpeg_message(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_JFIF_MAJOR) leave_jpeg(jpeg);
}

void on_jpeg_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMaxScans) return;
  errors_of(jpeg).too_many_scans = true;
  std::longjmp(errors_of(jpeg).caller, 1);
}

/// v / 255, rounded; v <= 255 * 255.
std::byte divided_by_255(unsigned v) {
  return static_cast<std::byte>((v + 127) / 255);
}

class JpegDecoder final : public PictureDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }

  Status open(ByteSpan encoded);
  PictureSize size() const override {
    return {.width_px = jpeg_.image_width, .height_px = jpeg_.image_height};
  }
  Result<PictureSize> start(const PictureSize& target) override;
  Status read(std::span<std::byte> row) override;
  Status finish() override;

 private:
  template <class Call>
  Status guarded(Call call);
  Status failure() const;
  void set_scale(const PictureSize& target);
  bool is_cmyk() const { return jpeg_.out_color_space == JCS_CMYK; }
  void to_rgb(std::span<std::byte> row) const;

  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  Bytes cmyk_row_;
};

JpegDecoder::JpegDecoder() {
  jpeg_.err = jpeg_std_error(&errors_.manager);
  errors_.manager.error_exit = leave_jpeg;
  errors_.manager.emit_message = on_jpeg_message;
  progress_.progress_monitor = on_jpeg_progress;
}

/// Calls libjpeg by `call`: see PictureDecoder.
template <class Call>
Status JpegDecoder::guarded(Call call) {
  static_assert(std::is_trivially_destructible_v<Call>);
  if (setjmp(errors_.caller) != 0) return failure();
  call();
  return Status::ok();
}

Status JpegDecoder::failure() const {
  if (errors_.too_many_scans) {
    return Status::corruption(fmt::format("a JPEG of more than {} scans", kMaxScans));
  }
  if (errors_.manager.msg_code == JERR_OUT_OF_MEMORY) {
    return Status::exhausted("no memory to decode a JPEG");
  }
  return Status::corruption(fmt::format("JPEG: {}", errors_.message.data()));
}

Status JpegDecoder::open(ByteSpan encoded) {
  BL_RETURN_IF_ERROR(guarded([this, encoded] {
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(encoded.data()),
                 static_cast<unsigned long>(encoded.size()));
    jpeg_read_header(&jpeg_, TRUE);
  }));
  return check_picture_size(jpeg_.image_width, jpeg_.image_height);
}

Result<PictureSize> JpegDecoder::start(const PictureSize& target) {
  const bool inks = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
  jpeg_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_.dct_method = JDCT_ISLOW;
  jpeg_.do_fancy_upsampling = TRUE;
  jpeg_.do_block_smoothing = FALSE;
  BL_RETURN_IF_ERROR(guarded([this, &target] {
    set_scale(target);
    jpeg_start_decompress(&jpeg_);
  }));
  if (is_cmyk()) cmyk_row_.resize(std::size_t{4} * jpeg_.output_width);
  return PictureSize{.width_px = jpeg_.output_width, .height_px = jpeg_.output_height};
}

/// To the smallest of 1/8, 1/4, 1/2 and 1 that is no smaller than `target`: an inverse DCT to fewer
/// pixels is quicker than averaging more of them, and nearly the same.
void JpegDecoder::set_scale(const PictureSize& target) {
  jpeg_.scale_denom = 8;
  for (jpeg_.scale_num = 1; jpeg_.scale_num < 8; jpeg_.scale_num *= 2) {
    jpeg_calc_output_dimensions(&jpeg_);
    if (jpeg_.output_width >= target.width_px && jpeg_.output_height >= target.height_px) return;
  }
}

Status JpegDecoder::read(std::span<std::byte> row) {
  BL_CHECK(row.size() == std::size_t{3} * jpeg_.output_width, "a row of another picture");
  std::byte* const into = is_cmyk() ? cmyk_row_.data() : row.data();
  BL_RETURN_IF_ERROR(guarded([this, into] {
    JSAMPROW sample_row = reinterpret_cast<JSAMPROW>(into);
    jpeg_read_scanlines(&jpeg_, &sample_row, 1);
  }));
  if (is_cmyk()) to_rgb(row);
  return Status::ok();
}

/// Paper that reflects what ink leaves. Adobe's marker says that 255 is no ink; else 0 is.
void JpegDecoder::to_rgb(std::span<std::byte> row) const {
  const unsigned flip = jpeg_.saw_Adobe_marker != 0 ? 0 : 255;
  for (std::size_t x = 0; x < jpeg_.output_width; ++x) {
    const std::byte* const cmyk = &cmyk_row_[4 * x];
    const unsigned black = std::to_integer<unsigned>(cmyk[3]) ^ flip;
    for (std::size_t c = 0; c < 3; ++c) {
      row[3 * x + c] = divided_by_255((std::to_integer<unsigned>(cmyk[c]) ^ flip) * black);
    }
  }
}

Status JpegDecoder::finish() {
  return guarded([this] { jpeg_finish_decompress(&jpeg_); });
}

}  // namespace

Result<std::unique_ptr<PictureDecoder>> open_jpeg(ByteSpan encoded) {
  auto decoder = std::make_unique<JpegDecoder>();
  BL_RETURN_IF_ERROR(decoder->open(encoded));
  return std::unique_ptr<PictureDecoder>(std::move(decoder));
}

}  // namespace batchloom::sources
