// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/byte_stream.h"

#include <algorithm>
#include <cstdint>

namespace batchloom::sources {
namespace {

class FileStream final : public ByteStream {
 public:
  explicit FileStream(ByteReader& file) : file_(file) {}

  std::string_view name() const override { return file_.name(); }

  Result<std::size_t> read(std::span<std::byte> out, const CallOptions& call) override {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), file_.size_bytes() - offset_));
    BL_RETURN_IF_ERROR(file_.read_at(offset_, out.first(size), call));
    offset_ += size;
    return size;
  }

 private:
  ByteReader& file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> stream_of(ByteReader& file) {
  return std::make_unique<FileStream>(file);
}

}  // namespace batchloom::sources
