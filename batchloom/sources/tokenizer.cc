// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tokenizer.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom::sources {
namespace {

Status check_ids(std::string_view where, std::span<const TokenId> ids, std::uint32_t vocab) {
  for (const TokenId id : ids) {
    if (id < vocab) continue;
    return Status::invalid(
        fmt::format("tokens.{}: id {} is outside of the vocabulary of {} ids", where, id, vocab));
  }
  return Status::ok();
}

class IdsTokenizer final : public Tokenizer {
 public:
  explicit IdsTokenizer(TokenSettings settings) : Tokenizer(std::move(settings)) {}

  std::string_view kind() const override { return "ids"; }
  bool takes_text() const override { return false; }
  Status encode(std::string_view, std::vector<TokenId>&) const override {
    BL_CHECK(false, "tokenizer ids was given text");
    return Status::ok();
  }
};

class BytesTokenizer final : public Tokenizer {
 public:
  static constexpr std::uint32_t kIds = 256;

  explicit BytesTokenizer(TokenSettings settings) : Tokenizer(std::move(settings)) {}

  std::string_view kind() const override { return "bytes"; }
  bool takes_text() const override { return true; }
  Status encode(std::string_view text, std::vector<TokenId>& ids) const override {
    const std::size_t before = ids.size();
    ids.resize(before + text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      ids[before + i] = static_cast<unsigned char>(text[i]);
    }
    return Status::ok();
  }
};

void add_ids(Digest& digest, std::span<const TokenId> ids) {
  digest.add_int(static_cast<std::uint64_t>(ids.size()));
  for (const TokenId id : ids) digest.add_int(id);
}

}  // namespace

Status check_token_settings(const TokenSettings& settings) {
  if (settings.vocab < 1 || settings.vocab > kMaxVocab) {
    return Status::invalid(
        fmt::format("tokens.vocab: {}; expected 1 to {}", settings.vocab, kMaxVocab));
  }
  BL_RETURN_IF_ERROR(check_ids("begin", settings.begin, settings.vocab));
  return check_ids("end", settings.end, settings.vocab);
}

std::uint64_t Tokenizer::digest() const {
  Digest digest;
  digest.add_text(kind());
  digest.add_int(settings_.vocab);
  add_ids(digest, settings_.begin);
  add_ids(digest, settings_.end);
  digest.add_int(model_digest());
  return digest.value();
}

Result<std::unique_ptr<Tokenizer>> make_ids_tokenizer(TokenSettings settings) {
  BL_RETURN_IF_ERROR(check_token_settings(settings));
  return std::unique_ptr<Tokenizer>(std::make_unique<IdsTokenizer>(std::move(settings)));
}

Result<std::unique_ptr<Tokenizer>> make_bytes_tokenizer(TokenSettings settings) {
  BL_RETURN_IF_ERROR(check_token_settings(settings));
  if (settings.vocab < BytesTokenizer::kIds) {
    return Status::invalid(fmt::format("tokens.vocab: {}; the tokenizer bytes needs at least {}",
                                       settings.vocab, BytesTokenizer::kIds));
  }
  return std::unique_ptr<Tokenizer>(std::make_unique<BytesTokenizer>(std::move(settings)));
}

}  // namespace batchloom::sources
