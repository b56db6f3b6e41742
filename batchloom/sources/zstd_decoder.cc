// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>
#include <zstd_errors.h>

#include "batchloom/base/check.h"
#include "batchloom/sources/decoder.h"

namespace batchloom::sources {
namespace {

/// The largest window that decoders must accept, by the format's own advice.
constexpr int kMaxWindowLog = 27;

class ZstdDecoder final : public Decoder {
 public:
  explicit ZstdDecoder(ZSTD_DCtx* context) : context_(context) {}
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }

  Result<Progress> decode(ByteSpan in, std::span<std::byte> out) override {
    ZSTD_inBuffer input{.src = in.data(), .size = in.size(), .pos = 0};
    ZSTD_outBuffer output{.dst = out.data(), .size = out.size(), .pos = 0};
    const std::size_t code = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(code) != 0) {
      if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) {
        return Status::exhausted("no memory to decode zstd");
      }
      return Status::corruption(ZSTD_getErrorName(code));
    }
    return Progress{.taken = input.pos, .made = output.pos, .frame_ended = code == 0};
  }

  void restart() override {
    BL_CHECK(ZSTD_isError(ZSTD_DCtx_reset(context_, ZSTD_reset_session_only)) == 0,
             "libzstd lost its state");
  }

 private:
  ZSTD_DCtx* const context_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_zstd_decoder() {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  if (context == nullptr) return Status::exhausted("no memory to decode zstd");
  auto decoder = std::make_unique<ZstdDecoder>(context);
  BL_CHECK(ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMaxWindowLog)) == 0,
           "libzstd does not take a window of 128 MiB");
  return std::unique_ptr<Decoder>(std::move(decoder));
}

}  // namespace batchloom::sources
