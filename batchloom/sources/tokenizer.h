// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

/// What all sources of a stream share, whatever tokenizes them.
struct TokenSettings {
  /// Every id is below it; 1 to kMaxVocab.
  std::uint32_t vocab = 0;
  /// Put before and after each record.
  std::vector<TokenId> begin = {};
  std::vector<TokenId> end = {};
};

/// Ok, or `invalid`: a vocabulary out of range, a begin or end id outside it.
Status check_token_settings(const TokenSettings& settings);

/// Ids fit an int32.
inline constexpr std::uint32_t kMaxVocab = std::uint32_t{1} << 31;

class BatchTokenizer;

/// Turns text into ids. Immutable; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  const TokenSettings& settings() const { return settings_; }
  /// As a pipeline's file names it.
  virtual std::string_view kind() const = 0;
  /// False: only sources that hold ids already can be read.
  virtual bool takes_text() const = 0;
  /// Longer texts are not taken.
  virtual std::uint64_t max_text_bytes() const { return kMaxRecordBytes; }
  /// Of a tokenizer that takes texts in batches: itself. Null for all others.
  virtual const BatchTokenizer* batches() const { return nullptr; }
  /// Appends the ids of `text`, which is UTF-8. Precondition: takes_text(). An id may be outside of
  /// the vocabulary: who builds the record looks at that.
  virtual Status encode(std::string_view text, std::vector<TokenId>& ids) const = 0;
  /// Of everything that decides which ids a record has: equal tokenizers have equal digests, on
  /// every host.
  std::uint64_t digest() const;

 protected:
  explicit Tokenizer(TokenSettings settings) : settings_(std::move(settings)) {}
  /// Of what the kind adds to the settings: a model's bytes, say.
  virtual std::uint64_t model_digest() const { return 0; }

 private:
  TokenSettings settings_;
};

/// For sources that hold ids. `invalid`: as check_token_settings().
Result<std::unique_ptr<Tokenizer>> make_ids_tokenizer(TokenSettings settings);

/// An id per byte of UTF-8, 0 to 255. `invalid` as above, and a vocabulary below 256.
Result<std::unique_ptr<Tokenizer>> make_bytes_tokenizer(TokenSettings settings);

}  // namespace batchloom::sources
