// SPDX-License-Identifier: Apache-2.0
// From the texts of a record to its ids, and what its mask must be like: the same in every format.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// The text or the prompt, and the answer. Borrowed.
struct RecordTexts {
  std::string_view text;
  std::string_view answer;
};

/// Adds the ids of a text behind those that `out` has; a tokenizer that takes batches gets the text
/// later, from out.texts, where it is the answer or not.
Status add_text(std::string_view text, bool is_answer, const Tokenizer& tokenizer, Record& out);

/// Adds their ids behind those that `out` has, and with LossOn::kAnswer the mask of all: nullopt,
/// or which id is outside of the vocabulary.
Result<std::optional<std::string>> add_texts(const RecordTexts& texts, LossOn loss_on,
                                             const Tokenizer& tokenizer, Record& out);

/// With LossOn::kMask: nullopt, or that ids and marks, from number `first` on, are not as many.
std::optional<std::string> check_mask(const RecordFields& fields, LossOn loss_on, std::size_t first,
                                      const Record& record);

}  // namespace batchloom::sources
