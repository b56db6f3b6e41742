// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_tokenizer.h"

#include <utility>

namespace batchloom::control {

Result<std::unique_ptr<sources::Tokenizer>> make_tokenizer(const TokensConfig& tokens) {
  sources::TokenSettings settings{.vocab = tokens.vocab, .begin = tokens.begin, .end = tokens.end};
  return tokens.tokenizer == TokenizerKind::kBytes
             ? sources::make_bytes_tokenizer(std::move(settings))
             : sources::make_ids_tokenizer(std::move(settings));
}

}  // namespace batchloom::control
