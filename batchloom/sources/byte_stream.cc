// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/byte_stream.h"

#include <algorithm>
#include <cstdint>

namespace batchloom::sources {
namespace {

class FileStream final : public ByteStream {
 public:
  FileStream(ByteReader& file, const FileStretch& stretch)
      : file_(file), offset_(stretch.offset), end_(stretch.offset + stretch.size_bytes) {}

  std::string_view name() const override { return file_.name(); }

  Result<std::size_t> read(std::span<std::byte> out, const CallOptions& call) override {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), end_ - offset_));
    BL_RETURN_IF_ERROR(file_.read_at(offset_, out.first(size), call));
    offset_ += size;
    return size;
  }

  std::uint64_t skip(std::uint64_t bytes) override {
    const std::uint64_t skipped = std::min(bytes, end_ - offset_);
    offset_ += skipped;
    return skipped;
  }

 private:
  ByteReader& file_;
  std::uint64_t offset_;
  const std::uint64_t end_;
};

}  // namespace

std::unique_ptr<ByteStream> stream_of(ByteReader& file) {
  return stream_of(file, {.offset = 0, .size_bytes = file.size_bytes()});
}

std::unique_ptr<ByteStream> stream_of(ByteReader& file, const FileStretch& stretch) {
  return std::make_unique<FileStream>(file, stretch);
}

}  // namespace batchloom::sources
