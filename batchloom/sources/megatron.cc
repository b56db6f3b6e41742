// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/megatron_index.h"
#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {
namespace {

constexpr std::string_view kDataEnding = ".bin";
constexpr std::string_view kIndexEnding = ".idx";
constexpr std::size_t kDataBufferBytes = 256 << 10;  ///< A multiple of every type's width.

/// An id that cannot be used, and its place among the ids that were looked at.
struct WrongId {
  std::size_t place = 0;
  std::int64_t id = 0;
};

/// Appends what `data` holds; stops at a wrong id.
template <class Stored>
std::optional<WrongId> append_ids(ByteSpan data, std::uint32_t vocab, std::vector<TokenId>& ids) {
  const std::size_t count = data.size() / sizeof(Stored);
  const std::size_t before = ids.size();
  ids.resize(before + count);
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, &data[i * sizeof(Stored)], sizeof(Stored));
    const auto id = static_cast<std::int64_t>(stored);
    if (id < 0 || id >= vocab) return WrongId{.place = i, .id = id};
    ids[before + i] = static_cast<TokenId>(id);
  }
  return std::nullopt;
}

std::optional<WrongId> append_ids(MegatronType type, ByteSpan data, std::uint32_t vocab,
                                  std::vector<TokenId>& ids) {
  switch (type) {
    case MegatronType::kU8: return append_ids<std::uint8_t>(data, vocab, ids);
    case MegatronType::kI8: return append_ids<std::int8_t>(data, vocab, ids);
    case MegatronType::kI16: return append_ids<std::int16_t>(data, vocab, ids);
    case MegatronType::kU16: return append_ids<std::uint16_t>(data, vocab, ids);
    case MegatronType::kI32: return append_ids<std::int32_t>(data, vocab, ids);
    case MegatronType::kI64: return append_ids<std::int64_t>(data, vocab, ids);
  }
  return std::nullopt;
}

class MegatronReader final : public ShardReader {
  using Documents = MegatronIndex::Documents;
  /// A random order has a few neighbours now and then: not worth buffers.
  static constexpr std::uint64_t kInOrder = 4;

 public:
  MegatronReader(std::unique_ptr<ByteReader> data, MegatronIndex index, const ReadLimits& limits,
                 const Tokenizer& tokenizer)
      : data_(std::move(data)), index_(std::move(index)), limits_(limits), tokenizer_(tokenizer) {}

  std::string_view name() const override { return data_->name(); }
  std::uint64_t records() const override { return index_.documents(); }

  Result<std::optional<BadRecord>> read(std::uint64_t record, const CallOptions& call,
                                        Record& out) override {
    RecordSize size;
    drop_record(out);
    BL_ASSIGN_OR_RETURN(std::optional<BadRecord> bad, measure(record, call, size));
    out.place = size.place;
    if (bad) return bad;
    start_record(tokenizer_.settings(), out);
    BL_ASSIGN_OR_RETURN(bad, read_ids(record, call, out));
    if (bad) {
      drop_record(out);
    } else {
      finish_record(tokenizer_.settings(), LossOn::kAll, out);
    }
    return bad;
  }

  Result<std::optional<BadRecord>> measure(std::uint64_t record, const CallOptions& call,
                                           RecordSize& out) override {
    BL_RETURN_IF_ERROR(check_number(record));
    BL_ASSIGN_OR_RETURN(const MegatronDocument document, document_of(record, call));
    out = {.place = document.place, .tokens = 0, .valid_labels = 0};
    const RecordName name = name_of(record, document.place);
    if (document.mode != 0) {
      return std::optional(
          bad_record(name, BadRecordReason::kNotText,
                     fmt::format("a sequence in it has mode {}; only text, mode 0, can be read",
                                 document.mode)));
    }
    if (auto bad = check_record_bytes(name, document.place, limits_)) return bad;
    const TokenSettings& settings = tokenizer_.settings();
    out.tokens =
        static_cast<std::uint32_t>(document.tokens + settings.begin.size() + settings.end.size());
    out.valid_labels = out.tokens == 0 ? 0 : out.tokens - 1;
    return std::optional<BadRecord>();
  }

  /// Those of a signed type are as good: below 0 they are above every vocabulary.
  std::optional<PlainIds> plain_ids() override {
    const MegatronType type = index_.type();
    const TokenSettings& settings = tokenizer_.settings();
    const bool is_plain = type == MegatronType::kU16 || type == MegatronType::kI32;
    if (!is_plain || !settings.begin.empty() || !settings.end.empty()) return std::nullopt;
    return PlainIds{.file = *data_, .id_bytes = width_bytes(type)};
  }

 private:
  /// Whoever asks for one after another has them read so.
  Result<MegatronDocument> document_of(std::uint64_t record, const CallOptions& call) {
    in_order_ = record == std::exchange(after_last_, record + 1) ? in_order_ + 1 : 0;
    if (in_order_ < kInOrder) {
      documents_.reset();
      return index_.document(record, call);
    }
    if (documents_ == nullptr) documents_ = std::make_unique<Documents>(index_, record);
    Result<MegatronDocument> document = documents_->next(call);
    if (!document.is_ok()) documents_.reset();
    return document;
  }

  RecordName name_of(std::uint64_t record, const RecordPlace& place) const {
    return {.shard = name(), .record = record, .offset_bytes = place.offset_bytes};
  }

  Result<std::optional<BadRecord>> read_ids(std::uint64_t record, const CallOptions& call,
                                            Record& out) {
    const std::uint32_t vocab = tokenizer_.settings().vocab;
    const std::uint32_t width = width_bytes(index_.type());
    Bytes buffer(std::min<std::uint64_t>(out.place.size_bytes, kDataBufferBytes));
    for (std::uint64_t done = 0; done < out.place.size_bytes;) {
      const auto part = std::span(buffer).first(
          std::min<std::uint64_t>(out.place.size_bytes - done, buffer.size()));
      BL_RETURN_IF_ERROR(data_->read_at(out.place.offset_bytes + done, part, call));
      const auto wrong = append_ids(index_.type(), part, vocab, out.ids);
      if (wrong) {
        return std::optional(
            bad_record(name_of(record, out.place), BadRecordReason::kTokenId,
                       fmt::format("token {}: {}", done / width + wrong->place,
                                   outside_vocab(std::to_string(wrong->id), vocab))));
      }
      done += part.size();
    }
    return std::optional<BadRecord>();
  }

  std::unique_ptr<ByteReader> data_;
  MegatronIndex index_;
  std::uint64_t after_last_ = UINT64_MAX;  ///< The record that goes on from the last one.
  std::uint64_t in_order_ = 0;             ///< So many have gone on from the one before.
  std::unique_ptr<Documents> documents_;   ///< Where many have.
  ReadLimits limits_;
  const Tokenizer& tokenizer_;
};

}  // namespace

Result<MegatronPaths> megatron_paths(const std::string& path) {
  if (!path.ends_with(kDataEnding) && !path.ends_with(kIndexEnding)) {
    return Status::invalid(
        fmt::format("{}: no Megatron data set; name its .bin file or its .idx file", path));
  }
  const std::string stem = path.substr(0, path.size() - kDataEnding.size());
  return MegatronPaths{.data = stem + std::string(kDataEnding),
                       .index = stem + std::string(kIndexEnding)};
}

Result<std::unique_ptr<ShardReader>> open_megatron(MegatronFiles files, const ReadLimits& limits,
                                                   const Tokenizer& tokenizer,
                                                   const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_limits(limits));
  const std::string index_name(files.index->name());
  BL_ASSIGN_OR_RETURN(MegatronIndex index, MegatronIndex::open(std::move(files.index), call));
  if (files.data->size_bytes() != index.data_bytes()) {
    return shard_fault(files.data->name(), files.data->size_bytes(),
                       fmt::format("the file ends here; the sequences in {} end at {}: one of the "
                                   "two was cut, or they are of two data sets",
                                   index_name, index.data_bytes()));
  }
  return std::unique_ptr<ShardReader>(
      std::make_unique<MegatronReader>(std::move(files.data), std::move(index), limits, tokenizer));
}

}  // namespace batchloom::sources
