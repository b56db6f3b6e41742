// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/batch_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {
namespace {

using MaybeBadRecord = std::optional<BadRecord>;

class TokenizingReader final : public ShardReader {
 public:
  TokenizingReader(std::unique_ptr<ShardReader> texts, const TokenizingSettings& settings,
                   const BatchTokenizer& tokenizer)
      : texts_(std::move(texts)), settings_(settings), tokenizer_(tokenizer) {}

  std::string_view name() const override { return texts_->name(); }
  std::uint64_t records() const override { return texts_->records(); }

  Result<MaybeBadRecord> read(std::uint64_t record, const CallOptions& call, Record& out) override {
    drop_record(out);
    BL_RETURN_IF_ERROR(check_number(record));
    if (record < first_ || record - first_ >= ahead_.size()) {
      BL_RETURN_IF_ERROR(fill(record, call));
    }
    ReadAhead& read = ahead_[record - first_];
    out.place = read.place;
    if (read.bad) return read.bad;
    BL_RETURN_IF_ERROR(build(record, read, out));
    if (record - first_ + 1 == ahead_.size())
      forget();  // In the shard's order nothing is asked twice.
    return MaybeBadRecord();
  }

  Result<MaybeBadRecord> read_pictures(std::uint64_t record, const CallOptions& call,
                                       std::vector<RecordPicture>& out) override {
    return texts_->read_pictures(record, call, out);
  }

 private:
  /// A record that was read, and what became of it.
  struct ReadAhead {
    RecordPlace place;
    MaybeBadRecord bad;
    std::uint32_t cells = 0;  ///< Of its picture.
    EncodedText encoded;
  };

  void forget() { std::vector<ReadAhead>().swap(ahead_); }

  Status fill(std::uint64_t first, const CallOptions& call) {
    forget();
    std::vector<ReadAhead> ahead;
    TextBatch batch{.shard = name(), .has_answers = settings_.has_answers};
    std::size_t bytes = 0;
    for (std::uint64_t number = first;
         number < records() && ahead.size() < kBatchRecords && bytes < kBatchBytes; ++number) {
      Record record;
      auto bad = texts_->read(number, call, record);
      // What is wrong with a shard comes when its record is asked for. All else may pass: then the
      // same batch is made again.
      if (bad.is(ErrorKind::kCorruption) && number > first) break;
      if (!bad.is_ok()) return bad.status();
      ahead.push_back({.place = record.place, .bad = *std::move(bad), .cells = 0, .encoded = {}});
      if (ahead.back().bad) continue;
      ahead.back().cells = cells_of(record);
      bytes += record.texts.text.size() + record.texts.answer.size();
      batch.entries.push_back({.record = number, .texts = std::move(record.texts)});
    }
    BL_RETURN_IF_ERROR(encode(first, batch, call, ahead));
    first_ = first;
    ahead_ = std::move(ahead);
    return Status::ok();
  }

  /// Of the picture of a record that has its texts yet.
  std::uint32_t cells_of(const Record& record) const {
    const TokenSettings& around = tokenizer_.settings();
    return static_cast<std::uint32_t>(record.ids.size() - around.begin.size() - around.end.size());
  }

  Status encode(std::uint64_t first, const TextBatch& batch, const CallOptions& call,
                std::vector<ReadAhead>& ahead) const {
    if (batch.entries.empty()) return Status::ok();
    BL_ASSIGN_OR_RETURN(auto encoded, tokenizer_.encode_batch(batch, call));
    BL_CHECK(encoded.size() == batch.entries.size(), "a tokenizer gives one for each record");
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      const std::uint64_t record = batch.entries[i].record;
      ReadAhead& read = ahead[record - first];
      if (const auto wrong = check_no_picture(encoded[i].ids, settings_.pictures)) {
        encoded[i].fault = {BadRecordReason::kTokenId, *wrong};
      }
      if (const auto& fault = encoded[i].fault) {
        read.bad =
            bad_record({.shard = name(), .record = record, .offset_bytes = read.place.offset_bytes},
                       fault->reason, fault->what);
      }
      read.encoded = std::move(encoded[i]);
    }
    return Status::ok();
  }

  Status build(std::uint64_t record, const ReadAhead& read, Record& out) const {
    const EncodedText& encoded = read.encoded;
    const bool wants_mask = settings_.loss_on != LossOn::kAll;
    if (wants_mask != encoded.mask.has_value()) return wrong_mask(record, wants_mask);
    start_record(tokenizer_.settings(), out);
    if (read.cells > 0) {
      add_picture(read.cells, settings_.pictures.token, settings_.loss_on, out);
    }
    if (wants_mask) {
      out.loss_mask.resize(out.ids.size(), 0);
      out.loss_mask.insert(out.loss_mask.end(), encoded.mask->begin(), encoded.mask->end());
    }
    out.ids.insert(out.ids.end(), encoded.ids.begin(), encoded.ids.end());
    finish_record(tokenizer_.settings(), wants_mask ? LossOn::kMask : LossOn::kAll, out);
    return Status::ok();
  }

  Status wrong_mask(std::uint64_t record, bool wants_mask) const {
    return Status::invalid(fmt::format(
        "tokenizer {}: {}: record {}: {}", tokenizer_.name(), name(), record,
        wants_mask ? fmt::format("it gives ids without a mask, and loss_on is \"{}\": "
                                 "only a mask tells which of them that is; return (ids, mask), or "
                                 "say loss_on = \"all\"",
                                 to_string(settings_.loss_on))
                   : "it gives a mask, and loss_on is \"all\": say loss_on = \"mask\", "
                     "or return ids alone"));
  }

  std::unique_ptr<ShardReader> texts_;
  const TokenizingSettings settings_;
  const BatchTokenizer& tokenizer_;
  std::uint64_t first_ = 0;
  std::vector<ReadAhead> ahead_;  ///< From record first_ on.
};

}  // namespace

Status BatchTokenizer::encode(std::string_view, std::vector<TokenId>&) const {
  BL_CHECK(false, "this tokenizer takes batches");
  return Status::ok();
}

std::unique_ptr<ShardReader> open_tokenizing(std::unique_ptr<ShardReader> texts,
                                             const TokenizingSettings& settings,
                                             const BatchTokenizer& tokenizer) {
  return std::make_unique<TokenizingReader>(std::move(texts), settings, tokenizer);
}

}  // namespace batchloom::sources
