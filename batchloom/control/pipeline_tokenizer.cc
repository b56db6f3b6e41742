// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_tokenizer.h"

#include <utility>

#include "batchloom/base/hash.h"

namespace batchloom::control {
namespace {

sources::PythonFunction python_function(const TextFunction& function) {
  Digest digest;
  digest.add_text(function.name);
  digest.add_int(function.source_digest);
  digest.add_int(function.files_digest);
  return {.name = function.name, .folder = function.folder, .digest = digest.value()};
}

}  // namespace

Result<std::unique_ptr<sources::Tokenizer>> make_tokenizer(const TokensConfig& tokens,
                                                           const sources::PythonOptions& python) {
  sources::TokenSettings settings{.vocab = tokens.vocab, .begin = tokens.begin, .end = tokens.end};
  switch (tokens.tokenizer) {
    case TokenizerKind::kBytes: return sources::make_bytes_tokenizer(std::move(settings));
    case TokenizerKind::kIds: return sources::make_ids_tokenizer(std::move(settings));
    case TokenizerKind::kSentencePiece:
      return sources::make_sentencepiece_tokenizer(std::move(settings), tokens.model.content);
    case TokenizerKind::kPython:
      return sources::make_python_tokenizer(std::move(settings), python_function(tokens.function),
                                            python);
  }
  return Status::internal("a tokenizer of no kind");
}

}  // namespace batchloom::control
