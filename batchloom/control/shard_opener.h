// SPDX-License-Identifier: Apache-2.0
// From what a pipeline says of a source to readers of its shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/sources/batch_tokenizer.h"
#include "batchloom/sources/file_pool.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_pictures.h"
#include "batchloom/sources/record_source.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::control {

/// What is to be known of the pictures of a source.
sources::PictureSettings pictures_of(const SourceConfig& source, const ImageConfig& image);

/// Opens shards of one source in its format. Immutable; thread-safe.
class ShardOpener {
 public:
  /// `invalid` where fields, loss, pictures and tokenizer do not go together. `tokenizer` outlives
  /// it.
  static Result<ShardOpener> create(const SourceConfig& source, const ImageConfig& image,
                                    const sources::Tokenizer& tokenizer);

  /// Of everything that decides which records a shard gives, and which labels of them count.
  sources::RecordRules rules() const;
  /// The file of `path` (as SourceConfig has it) that numbers the records, and is indexed: of a
  /// Megatron pair the .idx.
  std::string indexed_file(const std::string& path) const;
  /// All files of `path`.
  std::vector<std::string> files(const std::string& path) const;
  /// Whether its index is to keep ids, because reading them from the shard takes a tokenizer.
  bool keeps_ids() const { return format_ != SourceFormat::kMegatron; }
  const sources::PictureSettings& pictures() const { return pictures_; }
  /// Where in a record its picture begins: behind the ids that are put before each.
  std::size_t picture_begin() const { return tokenizer_->settings().begin.size(); }
  /// The tokenizer that takes its texts in batches; null where it has none, or holds ids.
  const sources::BatchTokenizer* batches() const;
  /// Of ids of this vocabulary, in an index: 2 or 4.
  std::uint8_t id_width_bytes() const;

  /// A reader of the shard, which needs no index; `file` is that of indexed_file(). Other files are
  /// opened by `pool`, which outlives the reader. Blocks: where a format does not say where its
  /// records lie, for as long as a pass over the shard takes. Errors: those of open_jsonl_file(),
  /// open_parquet(), open_tar_file(), open_text() and open_megatron().
  Result<std::unique_ptr<sources::ShardReader>> open(std::unique_ptr<sources::ByteReader> file,
                                                     sources::FilePool& pool,
                                                     const CallOptions& call) const;

 private:
  bool has_fields() const { return control::has_fields(format_); }

  ShardOpener(const SourceConfig& source, const ImageConfig& image,
              const sources::Tokenizer& tokenizer);

  /// The records with their ids, or, of batches(), with their texts.
  Result<std::unique_ptr<sources::ShardReader>> open_records(
      std::unique_ptr<sources::ByteReader> file, sources::FilePool& pool,
      const CallOptions& call) const;
  /// What readers of records are to make of masks; those of batches() come later.
  sources::LossOn records_loss() const {
    return batches() == nullptr ? loss_on_ : sources::LossOn::kAll;
  }

  /// Of records, where the tokenizer bounds texts.
  sources::ReadLimits limits() const;

  SourceFormat format_;
  sources::RecordFields fields_;
  sources::LossOn loss_on_;
  sources::PictureSettings pictures_;
  const sources::Tokenizer* tokenizer_;
};

}  // namespace batchloom::control
