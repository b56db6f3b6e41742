// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/shard_opener.h"

#include <algorithm>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/construction/token_span.h"
#include "batchloom/control/source_files.h"
#include "batchloom/sources/jsonl_file.h"
#include "batchloom/sources/megatron.h"
#include "batchloom/sources/parquet_reader.h"
#include "batchloom/sources/tar_reader.h"
#include "batchloom/sources/text_reader.h"

namespace batchloom::control {
namespace {

void add_fields(Digest& digest, const sources::RecordFields& fields) {
  digest.add_int(std::uint64_t{fields.index()});
  if (const auto* text = std::get_if<sources::TextField>(&fields)) {
    digest.add_text(text->text);
  } else if (const auto* answer = std::get_if<sources::AnswerFields>(&fields)) {
    digest.add_text(answer->prompt);
    digest.add_text(answer->answer);
  } else if (const auto* tokens = std::get_if<sources::TokenFields>(&fields)) {
    digest.add_text(tokens->tokens);
    digest.add_text(tokens->loss_mask);
  }
}

void add_pictures(Digest& digest, const sources::PictureSettings& pictures) {
  digest.add_text("picture");
  digest.add_text(pictures.field);
  for (const std::uint32_t rule : {pictures.rules.patch_px, pictures.rules.merge,
                                   pictures.rules.max_patches, pictures.token}) {
    digest.add_int(std::uint64_t{rule});
  }
}

}  // namespace

sources::PictureSettings pictures_of(const SourceConfig& source, const ImageConfig& image) {
  return {.field = source.picture, .rules = image.rules, .token = image.token.value_or(0)};
}

ShardOpener::ShardOpener(const SourceConfig& source, const ImageConfig& image,
                         const sources::Tokenizer& tokenizer)
    : format_(source.format),
      fields_(source.fields.value_or(sources::RecordFields())),
      loss_on_(source.loss_on),
      pictures_(pictures_of(source, image)),
      tokenizer_(&tokenizer) {}

Result<ShardOpener> ShardOpener::create(const SourceConfig& source, const ImageConfig& image,
                                        const sources::Tokenizer& tokenizer) {
  ShardOpener opener(source, image, tokenizer);
  if (!opener.has_fields()) return opener;
  Status fit = sources::check_fields(opener.fields_, opener.loss_on_, tokenizer);
  if (fit.is_ok()) {
    fit = sources::check_pictures(opener.pictures_, opener.fields_, tokenizer.settings());
  }
  if (!fit.is_ok()) return fit.with_context("source " + source.name);
  return opener;
}

sources::RecordRules ShardOpener::rules() const {
  Digest digest;
  digest.add_text(to_string(format_));
  const bool is_masked = format_ == SourceFormat::kText && loss_on_ != sources::LossOn::kAll;
  if (is_masked) digest.add_text(sources::to_string(loss_on_));
  if (has_fields()) {
    add_fields(digest, fields_);
    digest.add_text(sources::to_string(loss_on_));
  }
  if (pictures_.wanted()) add_pictures(digest, pictures_);
  return {.tokenizer_digest = tokenizer_->digest(), .fields_digest = digest.value()};
}

std::uint8_t ShardOpener::id_width_bytes() const {
  return static_cast<std::uint8_t>(
      store::token_bytes(construction::token_width_for(tokenizer_->settings().vocab)));
}

sources::ReadLimits ShardOpener::limits() const {
  sources::ReadLimits limits;
  // No text is longer than the record that holds it.
  if (!std::holds_alternative<sources::TokenFields>(fields_)) {
    limits.max_record_bytes = std::min(limits.max_record_bytes, tokenizer_->max_text_bytes());
  }
  return limits;
}

std::string ShardOpener::indexed_file(const std::string& path) const {
  return files(path).back();
}

std::vector<std::string> ShardOpener::files(const std::string& path) const {
  if (format_ != SourceFormat::kMegatron) return {path};
  const auto pair = sources::megatron_paths(path);
  return pair.is_ok() ? std::vector{pair->data, pair->index} : std::vector{path};
}

const sources::BatchTokenizer* ShardOpener::batches() const {
  const bool holds_ids =
      format_ == SourceFormat::kMegatron || std::holds_alternative<sources::TokenFields>(fields_);
  return holds_ids ? nullptr : tokenizer_->batches();
}

Result<std::unique_ptr<sources::ShardReader>> ShardOpener::open(
    std::unique_ptr<sources::ByteReader> file, sources::FilePool& pool,
    const CallOptions& call) const {
  BL_ASSIGN_OR_RETURN(auto records, open_records(std::move(file), pool, call));
  if (batches() == nullptr) return records;
  return sources::open_tokenizing(
      std::move(records),
      {.has_answers = std::holds_alternative<sources::AnswerFields>(fields_),
       .loss_on = loss_on_,
       .pictures = pictures_},
      *batches());
}

Result<std::unique_ptr<sources::ShardReader>> ShardOpener::open_records(
    std::unique_ptr<sources::ByteReader> file, sources::FilePool& pool,
    const CallOptions& call) const {
  if (format_ == SourceFormat::kJsonl) {
    const sources::Compression compression = sources::compression_of(file->name());
    return sources::open_jsonl_file(
        {.bytes = std::move(file), .compression = compression},
        {.fields = fields_, .loss_on = records_loss(), .limits = limits()}, *tokenizer_, call);
  }
  if (format_ == SourceFormat::kParquet) {
    return sources::open_parquet(
        std::move(file),
        {.fields = fields_, .loss_on = records_loss(), .pictures = pictures_, .limits = limits()},
        *tokenizer_, call);
  }
  if (format_ == SourceFormat::kTar) {
    const sources::Compression compression = sources::compression_of(file->name());
    return sources::open_tar_file(
        {.bytes = std::move(file), .compression = compression},
        {.fields = fields_, .loss_on = records_loss(), .pictures = pictures_, .limits = limits()},
        *tokenizer_, call);
  }
  if (format_ == SourceFormat::kText) {
    const sources::Compression compression = sources::compression_of(file->name());
    return sources::open_text({.bytes = std::move(file), .compression = compression}, limits(),
                              *tokenizer_, call);
  }
  BL_ASSIGN_OR_RETURN(const sources::MegatronPaths pair,
                      sources::megatron_paths(std::string(file->name())));
  BL_ASSIGN_OR_RETURN(auto data, pool.open(pair.data));
  return sources::open_megatron({.data = std::move(data), .index = std::move(file)}, {},
                                *tokenizer_, call);
}

}  // namespace batchloom::control
