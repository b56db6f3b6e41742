// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/jsonl_parser.h"
#include "batchloom/sources/jsonl_scan.h"
#include "batchloom/sources/record_ids.h"
#include "batchloom/sources/record_texts.h"

namespace batchloom::sources {
namespace {

/// A line with the byte before it and the byte behind it, where the file has them.
struct LineBytes {
  std::optional<char> before;
  std::string_view line;
  std::optional<char> after;
};

/// Whether a place is that of a line: offsets of another file give themselves away.
bool is_line(const LineBytes& bytes, const RecordPlace& place) {
  const bool begins = !bytes.before || *bytes.before == '\n' ||
                      (place.offset_bytes == kUtf8Mark.size() && *bytes.before == kUtf8Mark.back());
  const bool ends = !bytes.after || *bytes.after == '\n' || *bytes.after == '\r';
  return begins && ends && bytes.line.find('\n') == std::string_view::npos;
}

class JsonlReader final : public ShardReader {
 public:
  JsonlReader(std::unique_ptr<ByteReader> file, std::shared_ptr<const RecordOffsets> offsets,
              JsonlSettings settings, const Tokenizer& tokenizer)
      : file_(std::move(file)),
        offsets_(std::move(offsets)),
        settings_(std::move(settings)),
        tokenizer_(tokenizer),
        parser_(settings_.fields, settings_.loss_on, tokenizer.settings().vocab) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t records() const override { return offsets_->count(); }

  Result<std::optional<BadRecord>> read(std::uint64_t record, const CallOptions& call,
                                        Record& out) override {
    drop_record(out);
    BL_RETURN_IF_ERROR(check_number(record));
    out.place = offsets_->place(record);
    const RecordName name{
        .shard = file_->name(), .record = record, .offset_bytes = out.place.offset_bytes};
    BL_RETURN_IF_ERROR(check_place(name, out.place));
    if (auto bad = check_record_bytes(name, out.place, settings_.limits)) return bad;
    auto bad = read_line(name, call, out);
    parser_.shrink();
    keep_little(buffer_);
    if (!bad.is_ok() || bad->has_value()) drop_record(out);
    return bad;
  }

 private:
  Status check_place(const RecordName& name, const RecordPlace& place) const {
    const std::uint64_t size = file_->size_bytes();
    if (place.offset_bytes <= size && place.size_bytes <= size - place.offset_bytes) {
      return Status::ok();
    }
    return not_of_this_file(
        name, fmt::format("its {} bytes go beyond the file's end at {}", place.size_bytes, size));
  }
  static Status not_of_this_file(const RecordName& name, std::string_view why) {
    return Status::corruption(
        fmt::format("{}: {}; the file is another than the one that was indexed: index it again",
                    to_string(name), why));
  }

  Result<LineBytes> read_bytes_of(const RecordPlace& place, const CallOptions& call) {
    const std::size_t before = place.offset_bytes > 0 ? 1 : 0;
    const std::size_t after = place.offset_bytes + place.size_bytes < file_->size_bytes() ? 1 : 0;
    const std::size_t size = before + place.size_bytes + after;
    buffer_.resize(size + JsonlParser::kPaddingBytes);
    BL_RETURN_IF_ERROR(
        file_->read_at(place.offset_bytes - before, std::span(buffer_).first(size), call));
    const std::string_view text = as_text(ByteSpan(buffer_).first(size));
    return LineBytes{.before = before == 0 ? std::nullopt : std::optional(text.front()),
                     .line = text.substr(before, place.size_bytes),
                     .after = after == 0 ? std::nullopt : std::optional(text.back())};
  }

  Result<std::optional<BadRecord>> read_line(const RecordName& name, const CallOptions& call,
                                             Record& out) {
    BL_ASSIGN_OR_RETURN(LineBytes bytes, read_bytes_of(out.place, call));
    if (!is_line(bytes, out.place)) return not_of_this_file(name, "no line begins and ends there");
    // Files that were put together bring their marks along.
    if (bytes.line.starts_with(kUtf8Mark)) bytes.line.remove_prefix(kUtf8Mark.size());
    start_record(tokenizer_.settings(), out);
    if (settings_.loss_on == LossOn::kMask) out.loss_mask.resize(out.ids.size(), 0);
    RecordTexts texts;
    const std::size_t first = out.ids.size();
    BL_ASSIGN_OR_RETURN(const auto fault, parser_.parse(bytes.line, texts, out));
    if (fault) return std::optional(bad_record(name, fault->reason, fault->what));
    if (!std::holds_alternative<TokenFields>(settings_.fields)) {
      BL_ASSIGN_OR_RETURN(const auto wrong_id,
                          add_texts(texts, settings_.loss_on, tokenizer_, out));
      if (wrong_id) return std::optional(bad_record(name, BadRecordReason::kTokenId, *wrong_id));
    }
    if (const auto wrong = check_mask(settings_.fields, settings_.loss_on, first, out)) {
      return std::optional(bad_record(name, BadRecordReason::kField, *wrong));
    }
    finish_record(tokenizer_.settings(), settings_.loss_on, out);
    return std::optional<BadRecord>();
  }

  std::unique_ptr<ByteReader> file_;
  std::shared_ptr<const RecordOffsets> offsets_;
  JsonlSettings settings_;
  const Tokenizer& tokenizer_;
  JsonlParser parser_;
  Bytes buffer_;
};

}  // namespace

Result<std::unique_ptr<ShardReader>> open_jsonl(std::unique_ptr<ByteReader> file,
                                                std::shared_ptr<const RecordOffsets> offsets,
                                                JsonlSettings settings,
                                                const Tokenizer& tokenizer) {
  BL_RETURN_IF_ERROR(check_limits(settings.limits));
  BL_RETURN_IF_ERROR(check_fields(settings.fields, settings.loss_on, tokenizer));
  return std::unique_ptr<ShardReader>(std::make_unique<JsonlReader>(
      std::move(file), std::move(offsets), std::move(settings), tokenizer));
}

}  // namespace batchloom::sources
