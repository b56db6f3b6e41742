// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/utf8.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kScanBufferBytes = 256 << 10;
Status check_encoding(std::string_view start, std::string_view name) {
  // JSON begins with two characters of ASCII.
  const std::string_view encoding = foreign_encoding(start);
  if (encoding.empty()) return Status::ok();
  const bool compressed = encoding == "gzip" || encoding == "zstd";
  return shard_fault(
      name, 0,
      compressed ? fmt::format("the file is compressed by {}; its name does not say so", encoding)
                 : fmt::format("the file is in {}; convert it to UTF-8", encoding));
}

bool is_blank(std::byte byte) {
  const char c = std::to_integer<char>(byte);
  return c == ' ' || c == '\t' || c == '\r';
}

/// Tells lines apart, however they are cut into chunks.
class LineSplitter {
 public:
  LineSplitter(std::uint64_t begin, const PlaceSink& found)
      : line_begin_(begin), at_(begin), found_(found) {}

  Status add(ByteSpan chunk) {
    while (!chunk.empty()) {
      const auto* const line_end =
          static_cast<const std::byte*>(std::memchr(chunk.data(), '\n', chunk.size()));
      const std::size_t size =
          line_end == nullptr ? chunk.size() : static_cast<std::size_t>(line_end - chunk.data());
      add_to_line(chunk.first(size));
      if (line_end == nullptr) break;
      BL_RETURN_IF_ERROR(end_line());
      line_begin_ = ++at_;
      chunk = chunk.subspan(size + 1);
    }
    return Status::ok();
  }

  /// Also at the end of the file.
  Status end_line() {
    const bool blank = std::exchange(blank_, true);
    const bool cr = std::exchange(cr_, false);
    if (blank) return Status::ok();
    return found_({.offset_bytes = line_begin_, .size_bytes = at_ - line_begin_ - (cr ? 1 : 0)});
  }

 private:
  void add_to_line(ByteSpan part) {
    if (part.empty()) return;
    blank_ = blank_ && std::ranges::all_of(part, is_blank);
    cr_ = part.back() == std::byte{'\r'};
    at_ += part.size();
  }

  std::uint64_t line_begin_;
  std::uint64_t at_;
  bool blank_ = true;  ///< The line so far.
  bool cr_ = false;    ///< It ends with a carriage return, so far.
  const PlaceSink& found_;
};

}  // namespace

Status scan_jsonl(ByteStream& content, const CallOptions& call, const PlaceSink& found) {
  Bytes buffer(kScanBufferBytes);
  BL_ASSIGN_OR_RETURN(std::size_t size, content.read(buffer, call));
  ByteSpan chunk = std::span(buffer).first(size);
  BL_RETURN_IF_ERROR(check_encoding(as_text(chunk), content.name()));
  const std::size_t begin = as_text(chunk).starts_with(kUtf8Mark) ? kUtf8Mark.size() : 0;
  LineSplitter lines(begin, found);
  chunk = chunk.subspan(begin);
  while (!chunk.empty()) {
    BL_RETURN_IF_ERROR(lines.add(chunk));
    BL_ASSIGN_OR_RETURN(size, content.read(buffer, call));
    chunk = std::span(buffer).first(size);
  }
  return lines.end_line();
}

Result<std::shared_ptr<const RecordOffsets>> scan_jsonl_offsets(ByteStream& content,
                                                                std::uint64_t max_bytes,
                                                                const CallOptions& call) {
  return keep_offsets(content.name(), max_bytes,
                      [&](const PlaceSink& found) { return scan_jsonl(content, call, found); });
}

}  // namespace batchloom::sources
