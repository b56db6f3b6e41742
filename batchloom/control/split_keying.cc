// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/split_keying.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/control/pipeline_text.h"

namespace batchloom::control {
namespace {

/// What keys are made of, record by record.
class KeyedRecords {
 public:
  virtual ~KeyedRecords() = default;
  /// Of a record that its index calls good and not empty.
  virtual Result<std::uint64_t> key(std::uint64_t record) = 0;
};

class IndexedIds final : public KeyedRecords {
 public:
  explicit IndexedIds(const sources::SidecarIndex& index) : index_(index) {}

  Result<std::uint64_t> key(std::uint64_t record) override {
    BL_ASSIGN_OR_RETURN(const auto payload, index_.payload(record));
    ids_.resize(payload.ids.size());
    for (std::size_t i = 0; i < ids_.size(); ++i) ids_[i] = payload.ids[i];
    return sources::content_key(ids_);
  }

 private:
  const sources::SidecarIndex& index_;
  std::vector<sources::TokenId> ids_;
};

class ReadIds final : public KeyedRecords {
 public:
  ReadIds(std::unique_ptr<sources::ShardReader> reader, bool must_be_good, const CallOptions& call)
      : reader_(std::move(reader)), must_be_good_(must_be_good), call_(call) {}

  Result<std::uint64_t> key(std::uint64_t record) override {
    BL_ASSIGN_OR_RETURN(const auto bad, reader_->read(record, call_, record_));
    if (!bad) return sources::content_key(record_.ids);
    if (must_be_good_) return Status::invalid(bad->message);
    return 0U;  // It is struck out when it is drawn.
  }

 private:
  const std::unique_ptr<sources::ShardReader> reader_;
  const bool must_be_good_;
  const CallOptions& call_;
  sources::Record record_;
};

Status append_keys(const sources::SidecarIndex& index, KeyedRecords& records,
                   sources::SplitKeysWriter& writer) {
  for (std::uint64_t i = 0; i < index.totals().records; ++i) {
    BL_ASSIGN_OR_RETURN(const auto indexed, index.record(i));
    std::uint64_t key = 0;  // Who has no tokens is of no split.
    if (indexed.size.tokens > 0) {
      BL_ASSIGN_OR_RETURN(key, records.key(i));
    }
    BL_RETURN_IF_ERROR(writer.append(key));
  }
  return Status::ok();
}

}  // namespace

bool has_split_keys(const SourceConfig& source) {
  return is_divided(source) && source.split_by.rule != SplitRule::kNumber;
}

Result<SplitKeying> SplitKeying::create(const SourceConfig& source, const ShardOpener& opener,
                                        std::string index_folder) {
  SplitKeying keying(source, opener, std::move(index_folder));
  if (source.split_by.rule != SplitRule::kField) return keying;
  BL_ASSIGN_OR_RETURN(keying.bytes_, sources::make_bytes_tokenizer({.vocab = kByteIds}));
  SourceConfig of_field = source;
  of_field.fields = sources::TextField{source.split_by.field};
  of_field.picture.clear();
  of_field.loss_on = sources::LossOn::kAll;
  BL_ASSIGN_OR_RETURN(ShardOpener reads_field, ShardOpener::create(of_field, {}, *keying.bytes_));
  keying.field_opener_ = std::make_unique<const ShardOpener>(std::move(reads_field));
  return keying;
}

bool SplitKeying::reads_shard() const {
  return field_opener_ != nullptr || !opener_.keeps_ids();
}

Result<sources::SplitKeysHeader> SplitKeying::header_of(const sources::IndexedShard& shard) const {
  Digest digest;
  digest.add_text(toml_split_by(source_.split_by));
  const sources::RecordRules rules =
      field_opener_ != nullptr ? field_opener_->rules() : opener_.rules();
  digest.add_int(rules.tokenizer_digest);
  digest.add_int(rules.fields_digest);
  // Of a Megatron pair the index's fingerprint is that of the .idx, and ids are in the .bin.
  for (const std::string& file : opener_.files(shard.path)) {
    BL_ASSIGN_OR_RETURN(const sources::FileStamp stamp, sources::stamp_of(file));
    digest.add_int(stamp.size_bytes);
    digest.add_int(static_cast<std::uint64_t>(stamp.modified_ns));
  }
  return sources::SplitKeysHeader{.shard = shard.index->header().shard,
                                  .rule_digest = digest.value(),
                                  .records = shard.index->totals().records};
}

std::string SplitKeying::path_of(const sources::IndexedShard& shard) const {
  return sources::split_keys_path(shard.path, index_folder_);
}

Result<std::unique_ptr<sources::SplitKeys>> SplitKeying::open(
    const sources::IndexedShard& shard) const {
  BL_ASSIGN_OR_RETURN(const sources::SplitKeysHeader header, header_of(shard));
  return sources::SplitKeys::open(path_of(shard), header);
}

Result<std::unique_ptr<sources::ShardReader>> SplitKeying::open_shard(
    const sources::IndexedShard& shard, sources::FilePool& pool, const CallOptions& call) const {
  std::unique_ptr<sources::ByteReader> file = pool.reader(shard.path, shard.stamp);
  BL_RETURN_IF_ERROR(shard.index->check_ends(*file, call));
  const ShardOpener& opener = field_opener_ != nullptr ? *field_opener_ : opener_;
  BL_ASSIGN_OR_RETURN(auto reader, opener.open(std::move(file), pool, call));
  if (reader->records() == shard.index->totals().records) return reader;
  return Status::corruption(fmt::format("{}: {} records, and its index has {}", shard.path,
                                        reader->records(), shard.index->totals().records));
}

Status SplitKeying::make(const sources::IndexedShard& shard, objstore::FileOps& files,
                         sources::FilePool& pool, const CallOptions& call) const {
  std::unique_ptr<KeyedRecords> records = std::make_unique<IndexedIds>(*shard.index);
  if (reads_shard()) {
    BL_ASSIGN_OR_RETURN(auto reader, open_shard(shard, pool, call));
    records = std::make_unique<ReadIds>(std::move(reader), field_opener_ != nullptr, call);
  }
  BL_ASSIGN_OR_RETURN(const sources::SplitKeysHeader header, header_of(shard));
  BL_ASSIGN_OR_RETURN(const auto writer,
                      sources::SplitKeysWriter::create(files, path_of(shard), header));
  BL_RETURN_IF_ERROR(append_keys(*shard.index, *records, *writer));
  BL_ASSIGN_OR_RETURN(const sources::FileStamp now, sources::stamp_of(shard.path));
  BL_RETURN_IF_ERROR(sources::check_unchanged(shard.path, shard.stamp, now));
  BL_ASSIGN_OR_RETURN(const sources::SplitKeysHeader after, header_of(shard));
  if (after != header) return Status::conflict("a file of it changed meanwhile: start anew");
  return writer->finish();
}

}  // namespace batchloom::control
