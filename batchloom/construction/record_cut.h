// SPDX-License-Identifier: Apache-2.0
// A record cut into parts, the samples that it gives: at multiples of max_sample_tokens and nowhere
// else. The index that planning asks and the loader that brings the payload both cut by these
// functions, so that plan and payload cannot disagree.
//
//  1. Label i of a record is its token i + 1. The last token has none (-100), whatever follows the
//     record in a sequence.
//  2. A label counts where its token is *learned*, as the loss mask says: a mask has a row per
//     token, so that "learn the answer" counts the label that predicts the answer's first token,
//     and the record's first token is never a label.
//  3. A part has the labels of its own tokens. That of its last token is the first token of the
//     next part, which it carries as next_token.
//
// A record that was truncated ends where it was cut: nothing follows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/construction/token_span.h"
#include "batchloom/model/ids.h"
#include "batchloom/store/batch_builder.h"

namespace batchloom::construction {

/// What becomes of a record that is longer than max_sample_tokens.
enum class OverLength : std::uint8_t {
  kSplit,     ///< Parts: nothing is lost.
  kTruncate,  ///< One part: what lies beyond is lost.
  kDrop,      ///< Nothing of it is used.
};
/// "split", "truncate" or "drop".
std::string_view to_string(OverLength over_length);
/// All names, in the order of the values.
std::span<const std::string_view> over_length_names();

struct CutRule {
  std::uint32_t max_sample_tokens = 1;  ///< At least 1.
  OverLength over_length = OverLength::kSplit;
};

/// Tokens of a record that are used: what an index tells planning. 0: the record is left out.
std::uint32_t used_tokens(const CutRule& rule, std::uint32_t record_tokens);
/// How many parts it gives.
std::uint32_t part_count(const CutRule& rule, std::uint32_t record_tokens);

/// What a rule did to records that were too long. A value.
struct OverLengthCounts {
  std::uint64_t split_records = 0;
  std::uint64_t truncated_records = 0;
  std::uint64_t truncated_tokens = 0;  ///< Lost.
  std::uint64_t dropped_records = 0;
  std::uint64_t dropped_tokens = 0;  ///< Lost.

  void add(const CutRule& rule, std::uint32_t record_tokens);
  OverLengthCounts& operator+=(const OverLengthCounts& other);
  friend bool operator==(const OverLengthCounts&, const OverLengthCounts&) = default;
};

/// Tokens [begin, end) of a record are learned.
struct LearnedInterval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const LearnedInterval&, const LearnedInterval&) = default;
};

/// From a mask with one row per token, of which all but 0 are learned.
std::vector<LearnedInterval> learned_intervals(std::span<const std::uint8_t> mask);

/// A loss mask. Borrowed; absent: all tokens are learned.
using LossMask = std::optional<std::span<const LearnedInterval>>;

/// `invalid` where intervals do not ascend, touch each other, are empty or go beyond the record.
Status check_mask(const LossMask& mask, std::uint32_t record_tokens);

/// Which part of which record.
struct PartOf {
  model::PartIndex part;
  std::uint32_t record_tokens = 0;
};

/// All but the payload.
struct PartShape {
  std::uint32_t first_position = 0;  ///< In the record, of the part's token 0.
  std::uint32_t tokens = 0;
  bool has_next_token = false;  ///< The record goes on.
  /// As in store::SampleContent. Absent: all that exist count.
  std::optional<std::vector<store::LabelInterval>> labels;
  std::uint32_t valid_labels = 0;

  friend bool operator==(const PartShape&, const PartShape&) = default;
};

/// Linear in the part's intervals. Precondition: check_mask(), and a part below part_count().
PartShape shape_of_part(const CutRule& rule, const PartOf& which, const LossMask& mask);

/// A picture of a record, say. It goes with the part that holds its token.
struct RecordTensor {
  std::uint32_t token = 0;  ///< Of the record: where the picture begins.
  store::TensorInfo info;
  ByteSpan bytes;
};

/// One record's payload. Borrowed.
struct RecordContent {
  TokenSpan tokens;
  LossMask mask;
  std::span<const RecordTensor> tensors;  ///< By ascending token.
};

/// One part's payload. Borrows the record's.
struct PartContent {
  PartShape shape;
  TokenSpan tokens;
  std::optional<std::uint32_t> next_token;
  std::span<const RecordTensor> tensors;  ///< Their tokens count from the record's first.
};

/// `invalid`: a rule of 0 tokens, a record of 2^32 tokens or more, a part that the record does not
/// give (naming how many it does), as check_mask(), tensors that do not ascend.
Result<PartContent> cut_part(const CutRule& rule, const RecordContent& record,
                             model::PartIndex part);

}  // namespace batchloom::construction
