// SPDX-License-Identifier: Apache-2.0
// Tokenizers that take many texts at once. With one of them a reader leaves the texts of a record
// as they are (Record::texts), and open_tokenizing() makes ids of them, batch by batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_pictures.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// A batch has no more records than these, and ends with the record that brings its texts to so
/// many bytes. Both are part of what ids are: a function may look at all of its batch.
inline constexpr std::size_t kBatchRecords = 256;
inline constexpr std::size_t kBatchBytes = std::size_t{512} << 10;

/// Texts of neighbouring records of one shard.
struct TextBatch {
  struct Entry {
    std::uint64_t record = 0;  ///< Its number in the shard.
    OwnedTexts texts = {};
  };

  std::string_view shard;
  bool has_answers = false;  ///< Prompt and answer, and not one text.
  std::vector<Entry> entries = {};
};

/// What became of one of them.
struct EncodedText {
  struct Fault {
    BadRecordReason reason = BadRecordReason::kTokenizer;
    std::string what;
  };

  std::vector<TokenId> ids = {};
  /// For each id 0 or 1. Absent: the function gave none.
  std::optional<std::vector<std::uint8_t>> mask = {};
  /// Why no ids could be made of it, by its content.
  std::optional<Fault> fault = {};
};

/// Thread-safe.
class BatchTokenizer : public Tokenizer {
 public:
  const BatchTokenizer* batches() const override { return this; }
  bool takes_text() const override { return true; }
  /// Never called: readers look at batches() first.
  Status encode(std::string_view text, std::vector<TokenId>& ids) const override;

  /// What errors call it.
  virtual std::string_view name() const = 0;
  /// One for each entry, in their order; ids are below the vocabulary. Blocks for as long as that
  /// takes. Errors name the tokenizer, the shard and the records.
  virtual Result<std::vector<EncodedText>> encode_batch(const TextBatch& batch,
                                                        const CallOptions& call) const = 0;

  /// Gets ready for `threads` that encode at once. What it starts ends with stop(), and where the
  /// calling thread ends. Without it each thread has what it needs made when it needs it.
  virtual Status start(std::uint32_t threads) const = 0;
  virtual void stop() const = 0;

 protected:
  using Tokenizer::Tokenizer;
};

/// What makes records of texts.
struct TokenizingSettings {
  bool has_answers = false;
  LossOn loss_on = LossOn::kAll;
  PictureSettings pictures = {};
};

/// Reads ahead in `texts`, whose records have texts, and of ids only those of pictures and those
/// that are put around each record, and makes ids of what it read:
/// a batch begins at the record that is asked for, if it is not there already. `tokenizer` must
/// outlive the reader. Where the loss needs a mask and there is none, or does not and there is one,
/// reading is `invalid`.
std::unique_ptr<ShardReader> open_tokenizing(std::unique_ptr<ShardReader> texts,
                                             const TokenizingSettings& settings,
                                             const BatchTokenizer& tokenizer);

}  // namespace batchloom::sources
