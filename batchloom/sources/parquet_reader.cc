// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/parquet_reader.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "batchloom/sources/faults.h"
#include "batchloom/sources/parquet_file.h"
#include "batchloom/sources/record_ids.h"
#include "batchloom/sources/record_texts.h"
#include "batchloom/sources/utf8.h"

namespace batchloom::sources {
namespace {

using Bad = std::optional<BadRecord>;

std::vector<ParquetColumn> columns_of(const RecordFields& fields, LossOn loss_on) {
  if (const auto* text = std::get_if<TextField>(&fields)) {
    return {{text->text, ParquetContent::kText}};
  }
  if (const auto* answer = std::get_if<AnswerFields>(&fields)) {
    return {{answer->prompt, ParquetContent::kText}, {answer->answer, ParquetContent::kText}};
  }
  const auto& tokens = std::get<TokenFields>(fields);
  std::vector<ParquetColumn> columns = {{tokens.tokens, ParquetContent::kIds}};
  if (loss_on == LossOn::kMask) columns.push_back({tokens.loss_mask, ParquetContent::kMarks});
  return columns;
}

class ParquetReader final : public ShardReader {
 public:
  ParquetReader(std::unique_ptr<ParquetFile> file, ParquetSettings settings,
                std::vector<ParquetColumn> columns, const Tokenizer& tokenizer)
      : file_(std::move(file)),
        settings_(std::move(settings)),
        columns_(std::move(columns)),
        tokenizer_(tokenizer) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t records() const override { return file_->rows(); }

  Result<Bad> read(std::uint64_t record, const CallOptions& call, Record& out) override {
    drop_record(out);
    BL_RETURN_IF_ERROR(check_number(record));
    // The page may be there already, and then nothing else would look.
    if (call.stop.stop_requested()) {
      return Status::cancelled(fmt::format("{}: reading was stopped", name()));
    }
    out.place = {.offset_bytes = file_->offset_of(record), .size_bytes = 0};
    const RecordName at{.shard = name(), .record = record, .offset_bytes = out.place.offset_bytes};
    start_record(tokenizer_.settings(), out);
    auto bad = std::holds_alternative<TokenFields>(settings_.fields) ? read_lists(at, call, out)
                                                                     : read_texts(at, call, out);
    keep_little(list_.numbers);
    if (!bad.is_ok() || bad->has_value()) drop_record(out);
    return bad;
  }

  Result<Bad> read_pictures(std::uint64_t record, const CallOptions& call,
                            std::vector<RecordPicture>& out) override {
    out.clear();
    BL_RETURN_IF_ERROR(check_number(record));
    if (!settings_.pictures.wanted()) return Bad();
    const RecordName at{
        .shard = name(), .record = record, .offset_bytes = file_->offset_of(record)};
    Picture picture;
    BL_ASSIGN_OR_RETURN(Bad bad, read_picture(at, call, picture));
    if (bad) return bad;
    out.push_back({.token = static_cast<std::uint32_t>(tokenizer_.settings().begin.size()),
                   .grid = picture.grid,
                   .encoded = to_bytes(picture.encoded)});
    return Bad();
  }

 private:
  struct Picture {
    PictureGrid grid;
    std::string_view encoded;  ///< The column's.
  };

  Bad wrong_field(const RecordName& at, std::string_view what) const {
    return bad_record(at, BadRecordReason::kField, what);
  }

  /// Of the last column.
  Result<Bad> read_picture(const RecordName& at, const CallOptions& call, Picture& picture) {
    const std::string& field = settings_.pictures.field;
    BL_ASSIGN_OR_RETURN(const auto bytes, file_->text(columns_.size() - 1, at.record, call));
    if (!bytes)
      return wrong_field(at, fmt::format("field '{}' is null; expected a picture", field));
    if (auto bad = check_record_bytes(at, {.size_bytes = bytes->size()}, settings_.limits)) {
      return bad;
    }
    const auto grid = grid_of_bytes(as_bytes(*bytes), settings_.pictures.rules);
    if (const auto* fault = std::get_if<std::string>(&grid)) {
      return Bad(
          bad_record(at, BadRecordReason::kPicture, fmt::format("field '{}': {}", field, *fault)));
    }
    picture = {.grid = std::get<PictureGrid>(grid), .encoded = *bytes};
    return Bad();
  }

  Result<Bad> read_texts(const RecordName& at, const CallOptions& call, Record& out) {
    if (settings_.pictures.wanted()) {
      Picture picture;
      BL_ASSIGN_OR_RETURN(Bad bad, read_picture(at, call, picture));
      if (bad) return bad;
      out.place.size_bytes += picture.encoded.size();
      add_picture(picture.grid.tokens(), settings_.pictures.token, settings_.loss_on, out);
    }
    RecordTexts texts;
    const std::size_t first = out.ids.size();
    for (std::size_t column = 0; column < text_columns(); ++column) {
      BL_ASSIGN_OR_RETURN(const auto text, file_->text(column, at.record, call));
      const std::string& field = columns_[column].name;
      if (!text) {
        return wrong_field(at, fmt::format("field '{}' is null; expected a string", field));
      }
      out.place.size_bytes += text->size();
      if (auto bad = check_record_bytes(at, out.place, settings_.limits)) return bad;
      if (!is_utf8(*text)) {
        return Bad(bad_record(at, BadRecordReason::kEncoding,
                              fmt::format("field '{}': not valid UTF-8", field)));
      }
      (column == 0 ? texts.text : texts.answer) = *text;
    }
    BL_ASSIGN_OR_RETURN(auto wrong_id, add_texts(texts, settings_.loss_on, tokenizer_, out));
    if (!wrong_id)
      wrong_id = check_no_picture(std::span(out.ids).subspan(first), settings_.pictures);
    if (wrong_id) return Bad(bad_record(at, BadRecordReason::kTokenId, *wrong_id));
    finish_record(tokenizer_.settings(), settings_.loss_on, out);
    return Bad();
  }

  Result<Bad> read_lists(const RecordName& at, const CallOptions& call, Record& out) {
    const std::size_t first = out.ids.size();
    BL_ASSIGN_OR_RETURN(Bad bad, read_list(0, at, call, out));
    if (bad) return bad;
    bad = take_ids(at, out);
    if (bad) return bad;
    if (settings_.loss_on == LossOn::kMask) {
      out.loss_mask.resize(first, 0);
      BL_ASSIGN_OR_RETURN(bad, read_list(1, at, call, out));
      if (bad) return bad;
      bad = take_marks(at, out);
      if (bad) return bad;
    }
    if (const auto wrong = check_mask(settings_.fields, settings_.loss_on, first, out)) {
      return wrong_field(at, *wrong);
    }
    finish_record(tokenizer_.settings(), settings_.loss_on, out);
    return Bad();
  }

  /// Into list_.
  Result<Bad> read_list(std::size_t column, const RecordName& at, const CallOptions& call,
                        Record& out) {
    const std::uint64_t most = settings_.limits.max_record_bytes / sizeof(TokenId);
    BL_RETURN_IF_ERROR(file_->list(column, at.record, most, call, list_));
    const std::string& field = columns_[column].name;
    if (list_.is_null) {
      return wrong_field(at, fmt::format("field '{}' is null; expected a list", field));
    }
    out.place.size_bytes += list_.size * sizeof(TokenId);
    if (auto bad = check_record_bytes(at, out.place, settings_.limits)) return bad;
    if (list_.first_null) {
      return wrong_field(
          at, fmt::format("field '{}[{}]' is null; expected a number", field, *list_.first_null));
    }
    return Bad();
  }

  Bad take_ids(const RecordName& at, Record& out) const {
    const std::uint32_t vocab = tokenizer_.settings().vocab;
    for (std::size_t i = 0; i < list_.numbers.size(); ++i) {
      const std::int64_t number = list_.numbers[i];
      if (number < 0 || number >= vocab) {
        const std::string shown = file_->is_unsigned(0)
                                      ? fmt::format("{}", static_cast<std::uint64_t>(number))
                                      : fmt::format("{}", number);
        return bad_record(
            at, BadRecordReason::kTokenId,
            fmt::format("field '{}[{}]': {}", columns_[0].name, i, outside_vocab(shown, vocab)));
      }
      out.ids.push_back(static_cast<TokenId>(number));
    }
    return std::nullopt;
  }

  Bad take_marks(const RecordName& at, Record& out) const {
    for (std::size_t i = 0; i < list_.numbers.size(); ++i) {
      const std::int64_t number = list_.numbers[i];
      if (number != 0 && number != 1) {
        return wrong_field(
            at, fmt::format("field '{}[{}]' is {}; expected 0 or 1", columns_[1].name, i, number));
      }
      out.loss_mask.push_back(static_cast<std::uint8_t>(number));
    }
    return std::nullopt;
  }

  std::size_t text_columns() const {
    return columns_.size() - (settings_.pictures.wanted() ? 1 : 0);
  }

  std::unique_ptr<ParquetFile> file_;
  ParquetSettings settings_;
  std::vector<ParquetColumn> columns_;
  const Tokenizer& tokenizer_;
  ParquetList list_;
};

}  // namespace

Status parquet_is_built() {
  return Status::ok();
}

Result<std::unique_ptr<ShardReader>> open_parquet(std::unique_ptr<ByteReader> file,
                                                  ParquetSettings settings,
                                                  const Tokenizer& tokenizer,
                                                  const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_limits(settings.limits));
  BL_RETURN_IF_ERROR(check_fields(settings.fields, settings.loss_on, tokenizer));
  BL_RETURN_IF_ERROR(check_pictures(settings.pictures, settings.fields, tokenizer.settings()));
  std::vector<ParquetColumn> columns = columns_of(settings.fields, settings.loss_on);
  if (settings.pictures.wanted()) {
    columns.push_back({settings.pictures.field, ParquetContent::kText});
  }
  BL_ASSIGN_OR_RETURN(auto opened, ParquetFile::open(std::move(file), columns,
                                                     parquet_page_bytes(settings.limits), call));
  return std::unique_ptr<ShardReader>(std::make_unique<ParquetReader>(
      std::move(opened), std::move(settings), std::move(columns), tokenizer));
}

}  // namespace batchloom::sources
