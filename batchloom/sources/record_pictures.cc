// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <variant>
#include <vector>

namespace batchloom::sources {
namespace {

bool has(std::span<const TokenId> ids, TokenId id) {
  return std::ranges::find(ids, id) != ids.end();
}

bool names(const RecordFields& fields, const std::string& field) {
  if (const auto* text = std::get_if<TextField>(&fields)) return text->text == field;
  const auto* pair = std::get_if<AnswerFields>(&fields);
  return pair != nullptr && (pair->prompt == field || pair->answer == field);
}

}  // namespace

Status check_pictures(const PictureSettings& pictures, const RecordFields& fields,
                      const TokenSettings& tokens) {
  if (!pictures.wanted()) return Status::ok();
  BL_RETURN_IF_ERROR(check_picture_rules(pictures.rules));
  if (pictures.token >= tokens.vocab) {
    return Status::invalid(fmt::format("image.token: {} is outside of the vocabulary of {} ids",
                                       pictures.token, tokens.vocab));
  }
  if (has(tokens.begin, pictures.token) || has(tokens.end, pictures.token)) {
    return Status::invalid(
        fmt::format("image.token: {} is put around records, too", pictures.token));
  }
  if (std::holds_alternative<TokenFields>(fields)) {
    return Status::invalid("fields: a picture goes with a text, or with prompt and answer");
  }
  if (names(fields, pictures.field)) {
    return Status::invalid(
        fmt::format("fields: '{}' is named as a picture and as a text", pictures.field));
  }
  return Status::ok();
}

std::variant<PictureGrid, std::string> grid_of_bytes(ByteSpan encoded, const PictureRules& rules) {
  const Result<PictureSize> size = picture_size(encoded);
  if (!size.is_ok()) return std::string(size.status().message());
  return grid_of(*size, rules);
}

void add_picture(std::uint32_t cells, TokenId token, LossOn loss_on, Record& out) {
  out.loss_mask.resize(out.ids.size(), loss_on == LossOn::kAll ? 1 : 0);
  out.ids.resize(out.ids.size() + cells, token);
  out.loss_mask.resize(out.ids.size(), 0);
}

std::optional<std::string> check_no_picture(std::span<const TokenId> ids,
                                            const PictureSettings& pictures) {
  if (!pictures.wanted()) return std::nullopt;
  const auto found = std::ranges::find(ids, pictures.token);
  if (found == ids.end()) return std::nullopt;
  return fmt::format("token {}: id {} stands for pictures (image.token), and a text has it",
                     found - ids.begin(), pictures.token);
}

std::uint32_t picture_tokens(const StoredIds& ids, std::size_t first, TokenId token) {
  std::size_t end = first;
  while (end < ids.size() && ids[end] == token) ++end;
  return static_cast<std::uint32_t>(end - first);
}

}  // namespace batchloom::sources
