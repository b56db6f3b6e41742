// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tar_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/jsonl_parser.h"
#include "batchloom/sources/record_ids.h"
#include "batchloom/sources/record_texts.h"
#include "batchloom/sources/tar_archive.h"
#include "batchloom/sources/tar_fields.h"
#include "batchloom/sources/tar_scan.h"
#include "batchloom/sources/utf8.h"

namespace batchloom::sources {
namespace {

using MaybeBad = Result<std::optional<BadRecord>>;

/// What a parser is to take of the JSON of field number `which`.
RecordFields fields_of_part(const RecordFields& fields, std::size_t which,
                            const MemberField& from) {
  const std::string& name = from.field.empty() ? from.member : from.field;
  if (!std::holds_alternative<TokenFields>(fields)) return TextField{name};
  return which == 0 ? TokenFields{name, {}} : TokenFields{{}, name};
}

/// A member that holds a field of the records, and, while a record is read, what it holds.
struct WantedMember {
  explicit WantedMember(MemberField place) : from(std::move(place)) {}

  std::string_view text() const {
    const std::string_view padded = as_text(content);
    return padded.substr(0, padded.size() - JsonlParser::kPaddingBytes);
  }

  const MemberField from;
  bool found = false;
  Bytes content;  ///< With the parser's padding.
};

/// One that holds a text or ids.
struct SamplePart : WantedMember {
  SamplePart(const RecordFields& fields, std::size_t which, MemberField place, std::uint32_t vocab)
      : WantedMember(std::move(place)),
        wanted(fields_of_part(fields, which, from)),
        holds_ids(std::holds_alternative<TokenFields>(fields)),
        parser(wanted, which == 0 ? LossOn::kAll : LossOn::kMask, vocab) {}
  SamplePart(const SamplePart&) = delete;
  SamplePart& operator=(const SamplePart&) = delete;

  bool is_json() const { return holds_ids || !from.field.empty(); }

  const RecordFields wanted;  ///< The parser borrows it.
  const bool holds_ids;
  JsonlParser parser;
};

class TarReader final : public ShardReader {
 public:
  TarReader(std::unique_ptr<ByteReader> file, std::shared_ptr<const RecordOffsets> offsets,
            TarSettings settings, const Tokenizer& tokenizer)
      : file_(std::move(file)),
        offsets_(std::move(offsets)),
        settings_(std::move(settings)),
        tokenizer_(tokenizer) {
    for (MemberField& from : member_fields(settings_.fields, settings_.loss_on)) {
      parts_.push_back(std::make_unique<SamplePart>(settings_.fields, parts_.size(),
                                                    std::move(from), tokenizer.settings().vocab));
      members_.push_back(parts_.back().get());
    }
    if (settings_.pictures.wanted()) {
      picture_.emplace(member_field(settings_.pictures.field));
      members_.push_back(&*picture_);
    }
  }

  std::string_view name() const override { return file_->name(); }
  std::uint64_t records() const override { return offsets_->count(); }

  MaybeBad read(std::uint64_t record, const CallOptions& call, Record& out) override {
    drop_record(out);
    BL_RETURN_IF_ERROR(check_number(record));
    out.place = offsets_->place(record);
    auto bad = take_sample(record, call);
    if (bad.is_ok() && !bad->has_value()) bad = read_sample(name_of(record), out);
    for (const auto& part : parts_) part->parser.shrink();
    for (WantedMember* member : members_) keep_little(member->content);
    if (!bad.is_ok() || bad->has_value()) drop_record(out);
    return bad;
  }

  MaybeBad read_pictures(std::uint64_t record, const CallOptions& call,
                         std::vector<RecordPicture>& out) override {
    out.clear();
    BL_RETURN_IF_ERROR(check_number(record));
    if (!picture_) return std::optional<BadRecord>();
    BL_ASSIGN_OR_RETURN(auto bad, take_sample(record, call));
    if (bad) return bad;
    const auto grid = grid_of_picture();
    if (const auto* fault = std::get_if<std::string>(&grid)) {
      return std::optional(bad_picture(name_of(record), *fault));
    }
    picture_->content.resize(picture_->text().size());
    out.push_back({.token = static_cast<std::uint32_t>(tokenizer_.settings().begin.size()),
                   .grid = std::get<PictureGrid>(grid),
                   .encoded = std::move(picture_->content)});
    picture_->content = {};
    for (WantedMember* member : members_) keep_little(member->content);
    return std::optional<BadRecord>();
  }

 private:
  RecordName name_of(std::uint64_t record) const {
    return {.shard = file_->name(),
            .record = record,
            .offset_bytes = offsets_->place(record).offset_bytes};
  }

  /// All members that fields name.
  MaybeBad take_sample(std::uint64_t record, const CallOptions& call) {
    const RecordPlace place = offsets_->place(record);
    const RecordName name = name_of(record);
    BL_RETURN_IF_ERROR(check_place(name, place));
    if (auto bad = check_record_bytes(name, place, settings_.limits)) return bad;
    BL_ASSIGN_OR_RETURN(auto bad, read_members(name, place, call));
    if (bad) return bad;
    for (const WantedMember* member : members_) {
      if (member->found) continue;
      return std::optional(
          bad_record(name, BadRecordReason::kField,
                     fmt::format("the sample has no member '{}'", member->from.member)));
    }
    return bad;
  }

  std::variant<PictureGrid, std::string> grid_of_picture() const {
    return grid_of_bytes(as_bytes(picture_->text()), settings_.pictures.rules);
  }

  BadRecord bad_picture(const RecordName& name, std::string_view fault) const {
    return bad_record(name, BadRecordReason::kPicture,
                      fmt::format("member '{}': {}", picture_->from.member, fault));
  }

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

  /// Of the members that were taken.
  MaybeBad read_sample(const RecordName& name, Record& out) {
    start_record(tokenizer_.settings(), out);
    if (picture_) {
      const auto grid = grid_of_picture();
      if (const auto* fault = std::get_if<std::string>(&grid)) {
        return std::optional(bad_picture(name, *fault));
      }
      add_picture(std::get<PictureGrid>(grid).tokens(), settings_.pictures.token, settings_.loss_on,
                  out);
    }
    if (settings_.loss_on == LossOn::kMask) out.loss_mask.resize(out.ids.size(), 0);
    const bool ids = std::holds_alternative<TokenFields>(settings_.fields);
    BL_ASSIGN_OR_RETURN(auto bad, ids ? add_ids(name, out) : add_texts(name, out));
    if (bad) return bad;
    finish_record(tokenizer_.settings(), settings_.loss_on, out);
    return bad;
  }

  /// Takes the members that fields name. A member that is wrong makes the record a bad one only
  /// after all were looked at: a fault of the shard goes before.
  MaybeBad read_members(const RecordName& name, const RecordPlace& place, const CallOptions& call) {
    for (WantedMember* member : members_) member->found = false;
    const auto content =
        stream_of(*file_, {.offset = place.offset_bytes, .size_bytes = place.size_bytes});
    BL_ASSIGN_OR_RETURN(const auto archive,
                        TarArchive::open(*content, TarExtent::kMembers, place.offset_bytes));
    std::optional<BadRecord> bad;
    std::optional<std::string> key;
    std::set<std::string> extensions;
    while (true) {
      BL_ASSIGN_OR_RETURN(const auto member, archive->next(call));
      if (!member) break;
      const auto sample = sample_member(*member);
      if (!sample) continue;
      if (!key) key = sample->key;
      if (*key != sample->key) return not_of_this_file(name, "two samples begin there");
      if (!extensions.insert(sample->extension).second && !bad) {
        bad = bad_record(name, BadRecordReason::kField,
                         fmt::format("the sample has member '{}' twice", sample->extension));
      }
      if (!bad) {
        BL_ASSIGN_OR_RETURN(bad, take_member(name, *archive, *member, sample->extension, call));
      }
    }
    if (!key) return not_of_this_file(name, "no sample begins there");
    return bad;
  }

  MaybeBad take_member(const RecordName& name, TarArchive& archive, const TarMember& member,
                       std::string_view extension, const CallOptions& call) {
    WantedMember* first = nullptr;
    for (WantedMember* part : members_) {
      if (part->from.member != extension) continue;
      part->found = true;
      if (first != nullptr) {
        part->content = first->content;
        continue;
      }
      first = part;
      if (member.kind != TarMemberKind::kFile) {
        return std::optional(
            bad_record(name, BadRecordReason::kField,
                       fmt::format("member '{}' is no file but a link or a device", extension)));
      }
      if (member.size_bytes > settings_.limits.max_record_bytes) {
        return std::optional(
            bad_record(name, BadRecordReason::kTooLarge,
                       fmt::format("member '{}' has {} bytes; max_record_bytes is {}", extension,
                                   member.size_bytes, settings_.limits.max_record_bytes)));
      }
      BL_RETURN_IF_ERROR(archive.read(member, JsonlParser::kPaddingBytes, part->content, call));
    }
    return std::optional<BadRecord>();
  }

  MaybeBad add_texts(const RecordName& name, Record& out) {
    const std::size_t first = out.ids.size();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t begin = out.ids.size();
      BL_ASSIGN_OR_RETURN(const auto fault, add_part(*parts_[i], i > 0, out));
      if (fault) return std::optional(bad_part(name, *parts_[i], *fault));
      if (settings_.loss_on != LossOn::kAnswer) continue;
      out.loss_mask.resize(begin, 0);
      out.loss_mask.resize(out.ids.size(), i == 0 ? 0 : 1);
    }
    auto wrong_id = check_ids(out, first, tokenizer_.settings().vocab);
    if (!wrong_id)
      wrong_id = check_no_picture(std::span(out.ids).subspan(first), settings_.pictures);
    if (!wrong_id) return std::optional<BadRecord>();
    return std::optional(bad_record(name, BadRecordReason::kTokenId, *wrong_id));
  }

  Result<std::optional<JsonlFault>> add_part(SamplePart& part, bool is_answer, Record& out) const {
    std::string_view text = part.text();
    if (part.is_json()) {
      RecordTexts texts;
      BL_ASSIGN_OR_RETURN(auto fault, part.parser.parse(without_mark(text), texts, out));
      if (fault) return fault;
      text = texts.text;
    } else if (const auto wrong = text_fault(text)) {
      return std::optional(JsonlFault{BadRecordReason::kEncoding, *wrong});
    }
    if (!part.is_json()) text = without_mark(text);
    BL_RETURN_IF_ERROR(add_text(text, is_answer, tokenizer_, out));
    return std::optional<JsonlFault>();
  }

  MaybeBad add_ids(const RecordName& name, Record& out) {
    const std::size_t first = out.ids.size();
    for (const auto& part : parts_) {
      RecordTexts texts;
      const std::string_view text = without_mark(part->text());
      BL_ASSIGN_OR_RETURN(const auto fault, part->from.field.empty()
                                                ? part->parser.parse_list(text, out)
                                                : part->parser.parse(text, texts, out));
      if (fault) return std::optional(bad_part(name, *part, *fault));
    }
    if (settings_.loss_on != LossOn::kMask || out.loss_mask.size() == out.ids.size()) {
      return std::optional<BadRecord>();
    }
    const auto& fields = std::get<TokenFields>(settings_.fields);
    return std::optional(
        bad_record(name, BadRecordReason::kField,
                   fmt::format("{} ids in '{}' and {} marks in '{}'", out.ids.size() - first,
                               fields.tokens, out.loss_mask.size() - first, fields.loss_mask)));
  }

  static BadRecord bad_part(const RecordName& name, const SamplePart& part,
                            const JsonlFault& fault) {
    return bad_record(name, fault.reason,
                      fmt::format("member '{}': {}", part.from.member, fault.what));
  }

  std::unique_ptr<ByteReader> file_;
  std::shared_ptr<const RecordOffsets> offsets_;
  TarSettings settings_;
  const Tokenizer& tokenizer_;
  std::vector<std::unique_ptr<SamplePart>> parts_;
  std::optional<WantedMember> picture_;
  std::vector<WantedMember*> members_;  ///< All of these.
};

}  // namespace

Result<std::unique_ptr<ShardReader>> open_tar(std::unique_ptr<ByteReader> file,
                                              std::shared_ptr<const RecordOffsets> offsets,
                                              TarSettings settings, const Tokenizer& tokenizer) {
  BL_RETURN_IF_ERROR(check_limits(settings.limits));
  BL_RETURN_IF_ERROR(check_fields(settings.fields, settings.loss_on, tokenizer));
  BL_RETURN_IF_ERROR(check_pictures(settings.pictures, settings.fields, tokenizer.settings()));
  if (!member_field(settings.pictures.field).field.empty()) {
    return Status::invalid(
        fmt::format("fields: image is '{}'; a picture is a member of its own, and no field of JSON",
                    settings.pictures.field));
  }
  return std::unique_ptr<ShardReader>(std::make_unique<TarReader>(
      std::move(file), std::move(offsets), std::move(settings), tokenizer));
}

Result<std::unique_ptr<ShardReader>> open_tar_file(CompressibleFile file, TarSettings settings,
                                                   const Tokenizer& tokenizer,
                                                   const CallOptions& call,
                                                   std::uint64_t max_offsets_bytes) {
  BL_ASSIGN_OR_RETURN(ScannedFile scanned,
                      scan_file(std::move(file), max_offsets_bytes,
                                [&](ByteStream& content, const PlaceSink& found) {
                                  return scan_tar(content, call, found);
                                }));
  return open_tar(std::move(scanned.content), std::move(scanned.offsets), std::move(settings),
                  tokenizer);
}

}  // namespace batchloom::sources
