// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_fields.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

namespace batchloom::sources {
namespace {

using NamedField = std::pair<std::string_view, const std::string*>;

std::vector<NamedField> names_of(const RecordFields& fields) {
  if (const auto* text = std::get_if<TextField>(&fields)) return {{"text", &text->text}};
  if (const auto* answer = std::get_if<AnswerFields>(&fields)) {
    return {{"prompt", &answer->prompt}, {"answer", &answer->answer}};
  }
  const auto& tokens = std::get<TokenFields>(fields);
  if (tokens.loss_mask.empty()) return {{"tokens", &tokens.tokens}};
  return {{"tokens", &tokens.tokens}, {"loss_mask", &tokens.loss_mask}};
}

Status check_names(std::span<const NamedField> fields) {
  for (const auto& [what, name] : fields) {
    if (name->empty()) return Status::invalid(fmt::format("fields.{}: no field is named", what));
  }
  if (fields.size() < 2 || *fields[0].second != *fields[1].second) return Status::ok();
  return Status::invalid(fmt::format("fields: {} and {} are both '{}'; name two fields",
                                     fields[0].first, fields[1].first, *fields[0].second));
}

Status check_loss(const RecordFields& fields, LossOn loss_on, const Tokenizer& tokenizer) {
  if (loss_on == LossOn::kAnswer && !std::holds_alternative<AnswerFields>(fields)) {
    return Status::invalid("loss_on: \"answer\" needs the fields prompt and answer");
  }
  const auto* tokens = std::get_if<TokenFields>(&fields);
  const bool gets_mask = tokens == nullptr && tokenizer.batches() != nullptr;
  const bool has_mask = tokens != nullptr && !tokens->loss_mask.empty();
  if (loss_on == LossOn::kMask && !has_mask && !gets_mask) {
    return Status::invalid("loss_on: \"mask\" needs the fields tokens and loss_mask");
  }
  return Status::ok();
}

}  // namespace

std::string_view to_string(LossOn loss_on) {
  switch (loss_on) {
    case LossOn::kAll: return "all";
    case LossOn::kAnswer: return "answer";
    case LossOn::kMask: return "mask";
  }
  return "unknown";
}

Status check_fields(const RecordFields& fields, LossOn loss_on, const Tokenizer& tokenizer) {
  BL_RETURN_IF_ERROR(check_names(names_of(fields)));
  BL_RETURN_IF_ERROR(check_loss(fields, loss_on, tokenizer));
  if (tokenizer.takes_text() || std::holds_alternative<TokenFields>(fields)) return Status::ok();
  return Status::invalid(fmt::format(
      "fields: the tokenizer {} takes no text; name a field of ids as tokens", tokenizer.kind()));
}

}  // namespace batchloom::sources
