// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sentencepiece_model.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <optional>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"

namespace batchloom::sources {
namespace {

/// The number at the begin of `bytes`, as protobuf writes it, and taken off them.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Whether the model's last part, how it normalises, is there. The library takes a file that was
/// cut between two pieces for a smaller model.
bool is_whole(std::string_view bytes) {
  constexpr std::uint64_t kNormalizerKey = 3 << 3 | 2;
  while (const auto key = take_varint(bytes)) {
    if ((*key & 7) != 2) return false;  // All parts of a model have lengths.
    const auto size = take_varint(bytes);
    if (!size || *size > bytes.size()) return false;
    if (*key == kNormalizerKey) return true;
    bytes.remove_prefix(*size);
  }
  return false;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(TokenSettings settings, std::shared_ptr<const SentencePieceModel> model)
      : Tokenizer(std::move(settings)), model_(std::move(model)) {}

  std::string_view kind() const override { return "sentencepiece"; }
  bool takes_text() const override { return true; }
  std::uint64_t max_text_bytes() const override { return kMaxSentencePieceBytes; }
  Status encode(std::string_view text, std::vector<TokenId>& ids) const override {
    return model_->encode(text, ids);
  }

 private:
  std::uint64_t model_digest() const override { return model_->digest(); }

  std::shared_ptr<const SentencePieceModel> model_;
};

}  // namespace

struct SentencePieceModel::Library {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceModel::SentencePieceModel() : library_(std::make_unique<Library>()) {}

SentencePieceModel::~SentencePieceModel() = default;

Result<std::shared_ptr<const SentencePieceModel>> SentencePieceModel::parse(
    std::string_view bytes) {
  if (bytes.empty()) return Status::invalid("no sentencepiece model: it is empty");
  if (!is_whole(bytes)) return Status::invalid("no sentencepiece model, or one that was cut");
  std::shared_ptr<SentencePieceModel> model(new SentencePieceModel);
  const auto loaded =
      model->library_->processor.LoadFromSerializedProto({bytes.data(), bytes.size()});
  if (!loaded.ok()) {
    return Status::invalid(
        fmt::format("no sentencepiece model: the library says: {}", loaded.ToString()));
  }
  model->pieces_ = static_cast<std::uint32_t>(model->library_->processor.GetPieceSize());
  model->size_bytes_ = bytes.size();
  model->digest_ = xxh3_64(as_bytes(bytes));
  return std::shared_ptr<const SentencePieceModel>(std::move(model));
}

Status SentencePieceModel::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<int> encoded;
  const auto done = library_->processor.Encode({text.data(), text.size()}, &encoded);
  if (!done.ok()) {
    return Status::corruption(
        fmt::format("the sentencepiece model cannot encode a text of {} bytes: {}", text.size(),
                    done.ToString()));
  }
  ids.reserve(ids.size() + encoded.size());
  for (const int id : encoded) ids.push_back(static_cast<TokenId>(id));
  return Status::ok();
}

Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(
    TokenSettings settings, std::shared_ptr<const SentencePieceModel> model) {
  BL_RETURN_IF_ERROR(check_token_settings(settings));
  if (settings.vocab < model->pieces()) {
    return Status::invalid(
        fmt::format("tokens.vocab: {}; the model has {} pieces", settings.vocab, model->pieces()));
  }
  return std::unique_ptr<Tokenizer>(
      std::make_unique<SentencePieceTokenizer>(std::move(settings), std::move(model)));
}

}  // namespace batchloom::sources
