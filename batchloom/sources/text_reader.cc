// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/text_reader.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/record_ids.h"
#include "batchloom/sources/record_texts.h"
#include "batchloom/sources/utf8.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kCountedBytes = 64 << 10;

/// One record from the begin to the end.
Status find_text(ByteStream& content, const CallOptions& call, const PlaceSink& found) {
  Bytes buffer(kCountedBytes);
  RecordPlace place;
  while (true) {
    BL_ASSIGN_OR_RETURN(const std::size_t size, content.read(buffer, call));
    if (size == 0) return found(place);
    place.size_bytes += size;
  }
}

class TextReader final : public ShardReader {
 public:
  TextReader(std::unique_ptr<ByteReader> content, const ReadLimits& limits,
             const Tokenizer& tokenizer)
      : content_(std::move(content)), limits_(limits), tokenizer_(tokenizer) {}

  std::string_view name() const override { return content_->name(); }
  std::uint64_t records() const override { return 1; }

  Result<std::optional<BadRecord>> read(std::uint64_t record, const CallOptions& call,
                                        Record& out) override {
    drop_record(out);
    BL_RETURN_IF_ERROR(check_number(record));
    out.place = {.offset_bytes = 0, .size_bytes = content_->size_bytes()};
    const RecordName name{.shard = content_->name(), .record = 0, .offset_bytes = 0};
    if (auto bad = check_record_bytes(name, out.place, limits_)) return bad;
    auto bad = read_text(name, call, out);
    keep_little(buffer_);
    if (!bad.is_ok() || bad->has_value()) drop_record(out);
    return bad;
  }

 private:
  Result<std::optional<BadRecord>> read_text(const RecordName& name, const CallOptions& call,
                                             Record& out) {
    buffer_.resize(out.place.size_bytes);
    BL_RETURN_IF_ERROR(content_->read_at(0, buffer_, call));
    const std::string_view text = as_text(buffer_);
    if (const auto wrong = text_fault(text)) {
      return std::optional(bad_record(name, BadRecordReason::kEncoding, *wrong));
    }
    start_record(tokenizer_.settings(), out);
    const std::size_t first = out.ids.size();
    BL_RETURN_IF_ERROR(add_text(without_mark(text), false, tokenizer_, out));
    if (const auto wrong_id = check_ids(out, first, tokenizer_.settings().vocab)) {
      return std::optional(bad_record(name, BadRecordReason::kTokenId, *wrong_id));
    }
    finish_record(tokenizer_.settings(), LossOn::kAll, out);
    return std::optional<BadRecord>();
  }

  std::unique_ptr<ByteReader> content_;
  const ReadLimits limits_;
  const Tokenizer& tokenizer_;
  Bytes buffer_;
};

}  // namespace

Result<std::unique_ptr<ShardReader>> open_text(CompressibleFile file, const ReadLimits& limits,
                                               const Tokenizer& tokenizer,
                                               const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_limits(limits));
  if (!tokenizer.takes_text()) {
    return Status::invalid(
        fmt::format("{}: the tokenizer {} takes no text", file.bytes->name(), tokenizer.kind()));
  }
  if (file.compression != Compression::kNone) {
    BL_ASSIGN_OR_RETURN(ScannedFile scanned,
                        scan_file(std::move(file), sizeof(RecordPlace),
                                  [&](ByteStream& content, const PlaceSink& found) {
                                    return find_text(content, call, found);
                                  }));
    file.bytes = std::move(scanned.content);
  }
  return std::unique_ptr<ShardReader>(
      std::make_unique<TextReader>(std::move(file.bytes), limits, tokenizer));
}

}  // namespace batchloom::sources
