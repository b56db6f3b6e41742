// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tar_fields.h"

#include <algorithm>

#include "batchloom/sources/tar_scan.h"

namespace batchloom::sources {

MemberField member_field(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (end < name.size() && folded(name.substr(begin, end - begin)) == "json") {
      return {.member = folded(name.substr(0, end)), .field = std::string(name.substr(end + 1))};
    }
    begin = end + 1;
  }
  return {.member = folded(name), .field = {}};
}

std::vector<MemberField> member_fields(const RecordFields& fields, LossOn loss_on) {
  if (const auto* text = std::get_if<TextField>(&fields)) return {member_field(text->text)};
  if (const auto* pair = std::get_if<AnswerFields>(&fields)) {
    return {member_field(pair->prompt), member_field(pair->answer)};
  }
  const auto& tokens = std::get<TokenFields>(fields);
  if (loss_on != LossOn::kMask) return {member_field(tokens.tokens)};
  return {member_field(tokens.tokens), member_field(tokens.loss_mask)};
}

}  // namespace batchloom::sources
