// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "batchloom/base/status.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// One field holds the text.
struct TextField {
  std::string text;

  friend bool operator==(const TextField&, const TextField&) = default;
};

/// Two texts, tokenized one by one: the answer's ids follow those of the prompt.
struct AnswerFields {
  std::string prompt;
  std::string answer;

  friend bool operator==(const AnswerFields&, const AnswerFields&) = default;
};

/// A list of ids, and, where `loss_mask` names one, a list of as many 0 or 1, false or true.
struct TokenFields {
  std::string tokens;
  std::string loss_mask = {};

  friend bool operator==(const TokenFields&, const TokenFields&) = default;
};

/// Which fields of a record hold what.
using RecordFields = std::variant<TextField, AnswerFields, TokenFields>;

/// Which of a record's labels the loss counts. Of the ids that are put around each record, those
/// before count where all do; those after count as the record's last id does.
enum class LossOn : std::uint8_t {
  kAll,     ///< All; a loss mask is not looked at.
  kAnswer,  ///< Those of the answer. Needs AnswerFields.
  /// Those that the mask marks. Needs TokenFields with one, or a tokenizer that gives masks.
  kMask,
};

/// "all", "answer", "mask".
std::string_view to_string(LossOn loss_on);

/// Ok, or `invalid`: a field without a name, one name twice, a loss that the fields do not tell, or
/// text where the tokenizer takes none.
Status check_fields(const RecordFields& fields, LossOn loss_on, const Tokenizer& tokenizer);

}  // namespace batchloom::sources
