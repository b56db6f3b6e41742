// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <string>

#include "batchloom/base/check.h"
#include "batchloom/sources/decoder.h"

namespace batchloom::sources {
namespace {

/// zlib: the largest window, and a header and a checksum as gzip has them.
constexpr int kGzipWindow = 15 + 16;
/// What one call may take or make: zlib counts in 32 bits.
constexpr std::size_t kMaxCallBytes = std::size_t{1} << 30;

class GzipDecoder final : public Decoder {
 public:
  ~GzipDecoder() override { inflateEnd(&stream_); }

  Status start() {
    if (inflateInit2(&stream_, kGzipWindow) == Z_OK) return Status::ok();
    return Status::exhausted("no memory to decode gzip");
  }

  Result<Progress> decode(ByteSpan in, std::span<std::byte> out) override {
    in = in.first(std::min(in.size(), kMaxCallBytes));
    out = out.first(std::min(out.size(), kMaxCallBytes));
    // zlib takes a pointer to what it does not write.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return Status::exhausted("no memory to decode gzip");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return Status::corruption(stream_.msg != nullptr ? stream_.msg : "needs a dictionary");
    }
    const Progress progress{.taken = in.size() - stream_.avail_in,
                            .made = out.size() - stream_.avail_out,
                            .frame_ended = code == Z_STREAM_END};
    if (progress.frame_ended) restart();
    return progress;
  }

  void restart() override { BL_CHECK(inflateReset(&stream_) == Z_OK, "zlib lost its state"); }

 private:
  z_stream stream_{};
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_gzip_decoder() {
  auto decoder = std::make_unique<GzipDecoder>();
  BL_RETURN_IF_ERROR(decoder->start());
  return std::unique_ptr<Decoder>(std::move(decoder));
}

}  // namespace batchloom::sources
