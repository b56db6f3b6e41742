// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_tokenizer.h"

#include <utility>

namespace batchloom::control {

Result<std::unique_ptr<sources::Tokenizer>> make_tokenizer(const TokensConfig& tokens) {
  sources::TokenSettings settings{.vocab = tokens.vocab, .begin = tokens.begin, .end = tokens.end};
  switch (tokens.tokenizer) {
    case TokenizerKind::kBytes: return sources::make_bytes_tokenizer(std::move(settings));
    case TokenizerKind::kIds: return sources::make_ids_tokenizer(std::move(settings));
    case TokenizerKind::kSentencePiece:
      return sources::make_sentencepiece_tokenizer(std::move(settings), tokens.model.content);
  }
  return Status::internal("a tokenizer of no kind");
}

}  // namespace batchloom::control
