// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// A model of sentencepiece in memory. Immutable; thread-safe: encoding is const in the library,
/// which draws random numbers for sampling alone.
class SentencePieceModel {
 public:
  /// `bytes` are those of a model's file. `invalid`: no model that the library takes, and why. The
  /// library trusts a model that it takes: one made to do harm may do it.
  static Result<std::shared_ptr<const SentencePieceModel>> parse(std::string_view bytes);
  ~SentencePieceModel();

  /// Ids are below this.
  std::uint32_t pieces() const { return pieces_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Of the bytes; what tells models apart.
  std::uint64_t digest() const { return digest_; }

  /// Appends the ids of `text`, which is UTF-8, as spm_encode gives them: normalised as the model
  /// says, with neither <s> nor </s> around it; a control symbol spelt out in a text is text.
  /// Takes up to 150 bytes of memory for each of the text's. `corruption`: the model contradicts
  /// itself.
  Status encode(std::string_view text, std::vector<TokenId>& ids) const;

 private:
  struct Library;
  SentencePieceModel();

  std::unique_ptr<Library> library_;
  std::uint32_t pieces_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t digest_ = 0;
};

/// The longest text that is given to sentencepiece, because of the memory it takes.
inline constexpr std::uint64_t kMaxSentencePieceBytes = std::uint64_t{16} << 20;

/// Text by a model. `invalid`: as make_bytes_tokenizer(), and a vocabulary that is smaller than the
/// model's; a larger one has room for ids of the trainer's own.
Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(
    TokenSettings settings, std::shared_ptr<const SentencePieceModel> model);

}  // namespace batchloom::sources
