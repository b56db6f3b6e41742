// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_texts.h"

#include <fmt/format.h>

#include <variant>

#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {

Status add_text(std::string_view text, bool is_answer, const Tokenizer& tokenizer, Record& out) {
  if (tokenizer.batches() == nullptr) return tokenizer.encode(text, out.ids);
  (is_answer ? out.texts.answer : out.texts.text) = text;
  return Status::ok();
}

Result<std::optional<std::string>> add_texts(const RecordTexts& texts, LossOn loss_on,
                                             const Tokenizer& tokenizer, Record& out) {
  const std::size_t first = out.ids.size();
  BL_RETURN_IF_ERROR(add_text(texts.text, false, tokenizer, out));
  const std::size_t answer = out.ids.size();
  BL_RETURN_IF_ERROR(add_text(texts.answer, true, tokenizer, out));
  if (loss_on == LossOn::kAnswer) {
    out.loss_mask.assign(answer, 0);
    out.loss_mask.resize(out.ids.size(), 1);
  }
  return check_ids(out, first, tokenizer.settings().vocab);
}

std::optional<std::string> check_mask(const RecordFields& fields, LossOn loss_on, std::size_t first,
                                      const Record& record) {
  if (loss_on != LossOn::kMask || record.loss_mask.size() == record.ids.size()) return std::nullopt;
  const auto& tokens = std::get<TokenFields>(fields);
  return fmt::format("{} ids in '{}' and {} marks in '{}'", record.ids.size() - first,
                     tokens.tokens, record.loss_mask.size() - first, tokens.loss_mask);
}

}  // namespace batchloom::sources
