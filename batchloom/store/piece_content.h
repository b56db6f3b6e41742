// SPDX-License-Identifier: Apache-2.0
// What a piece takes of its sample: tokens, the one after them, labels, tensors.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "batchloom/store/batch_builder.h"

namespace batchloom::store {

/// Whether `content` is what the plan says of `sample`: `invalid`, saying what is not, and for the
/// caller to say whose it is.
Status check_content(const model::PlanSample& sample, TokenWidth width,
                     const SampleContent& content);

/// Borrows the sample's content.
struct PieceContent {
  ByteSpan tokens;
  std::optional<std::uint32_t> next_token;
  bool all_labels = false;                ///< Then `labels` is empty.
  std::vector<LabelInterval> labels;      ///< Relative to the piece.
  std::span<const SampleTensor> tensors;  ///< Their tokens count from the sample's first.
};

/// Logarithmic in the sample's labels and tensors, linear in the piece's. Precondition:
/// check_content() is ok, and the piece lies inside the sample.
PieceContent cut_piece(const model::Piece& piece, TokenWidth width, const SampleContent& content);

/// The id that stands at place `index` of a column of token ids.
std::uint32_t token_at(ByteSpan tokens, TokenWidth width, std::size_t index);

}  // namespace batchloom::store
