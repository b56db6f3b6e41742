// SPDX-License-Identifier: Apache-2.0
// simdjson behind a type of ours: only jsonl_parser.cc includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_texts.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

/// What is wrong with a line.
struct JsonlFault {
  BadRecordReason reason = BadRecordReason::kSyntax;
  std::string what;
};

/// Takes the fields of one line after another. The whole line must be right JSON, as RFC 8259 has
/// it, and not only the fields. One thread at a time.
class JsonlParser {
 public:
  /// Bytes behind a line that must be readable; what they hold does not matter.
  static constexpr std::size_t kPaddingBytes = 64;
  /// A list in a list is one level deeper.
  static constexpr int kMaxDepth = 1000;

  /// Borrows `fields`. A loss mask is looked at where `loss_on` says so.
  JsonlParser(const RecordFields& fields, LossOn loss_on, std::uint32_t vocab);
  ~JsonlParser();

  /// Appends the ids and the mask of TokenFields to `out`; the texts of other fields lie in the
  /// parser until the next call. Nullopt, or why the line is none that can be used. Needs about
  /// seven times the memory of the line, and gives back what is above kKeptBytes in shrink();
  /// `exhausted` where that cannot be had.
  Result<std::optional<JsonlFault>> parse(std::string_view padded_line, RecordTexts& texts,
                                          Record& out);

  /// The same for a text that is the list of TokenFields alone: of ids, or the mask where the
  /// fields name nothing else.
  Result<std::optional<JsonlFault>> parse_list(std::string_view padded_text, Record& out);
  void shrink();

 private:
  class Simdjson;
  std::unique_ptr<Simdjson> simdjson_;
};

}  // namespace batchloom::sources
