// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_layout.h"

namespace batchloom::store {
namespace {

/// A column of `size_bytes` at `at`, which moves to where the next one begins.
Slice take_column(std::uint64_t& at, std::uint64_t size_bytes) {
  const Slice column{.offset_bytes = at, .size_bytes = size_bytes};
  at = column_aligned(column.end());
  return column;
}

}  // namespace

MicroBatchColumns lay_out(std::uint64_t begin, TokenWidth width,
                          std::span<const PieceCounts> pieces,
                          std::span<const std::uint64_t> tensor_sizes) {
  std::uint64_t tokens = 0;
  std::uint64_t label_intervals = 0;
  for (const PieceCounts& piece : pieces) {
    tokens += piece.tokens;
    label_intervals += piece.label_intervals;
  }
  MicroBatchColumns columns;
  columns.end = begin;
  columns.tokens = take_column(columns.end, tokens * token_bytes(width));
  columns.next_tokens = take_column(columns.end, pieces.size() * token_bytes(width));
  columns.labels = take_column(columns.end, label_intervals * kLabelIntervalBytes);
  columns.tensors.reserve(tensor_sizes.size());
  for (const std::uint64_t size_bytes : tensor_sizes) {
    columns.tensors.push_back(take_column(columns.end, size_bytes));
  }
  return columns;
}

PieceWalk::PieceWalk(const MicroBatchColumns& columns, TokenWidth width)
    : columns_(columns),
      token_bytes_(token_bytes(width)),
      tokens_at_(columns.tokens.offset_bytes),
      next_token_at_(columns.next_tokens.offset_bytes),
      labels_at_(columns.labels.offset_bytes) {}

PieceSlices PieceWalk::next(const PieceCounts& counts) {
  PieceSlices slices;
  slices.tokens = take(tokens_at_, counts.tokens * token_bytes_);
  slices.next_token = take(next_token_at_, token_bytes_);
  slices.labels = take(labels_at_, std::uint64_t{counts.label_intervals} * kLabelIntervalBytes);
  const auto tensors = std::span(columns_.tensors).subspan(tensor_, counts.tensors);
  slices.tensors.assign(tensors.begin(), tensors.end());
  tensor_ += counts.tensors;
  return slices;
}

Slice PieceWalk::take(std::uint64_t& at, std::uint64_t size_bytes) {
  const Slice slice{.offset_bytes = at, .size_bytes = size_bytes};
  at += size_bytes;
  return slice;
}

}  // namespace batchloom::store
