// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/decoder.h"

#include "batchloom/base/check.h"

namespace batchloom::sources {

std::string_view to_string(Compression compression) {
  switch (compression) {
    case Compression::kNone: return "none";
    case Compression::kGzip: return "gzip";
    case Compression::kZstd: return "zstd";
  }
  return "unknown";
}

Compression compression_of(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::kGzip;
  if (path.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

Result<std::unique_ptr<Decoder>> make_decoder(Compression compression) {
  BL_CHECK(compression != Compression::kNone, "a decoder for what is not compressed");
  return compression == Compression::kGzip ? make_gzip_decoder() : make_zstd_decoder();
}

}  // namespace batchloom::sources
