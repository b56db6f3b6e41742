// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a micro-batch's pieces lie. All of it follows from counts, by the functions
// here alone: no offset of a column is stored, so that builder, runs and index cannot disagree.
//
//   column 1   the token ids of all pieces, back to back
//   column 2   a look-ahead token id per piece
//   column 3   the label intervals of all pieces: begin and end, 4 bytes each, from the piece on
//   then       a column per tensor, piece by piece
//
// Each column begins at a multiple of kColumnAlignBytes, and so does what follows the last. Columns
// without rows take no bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/store/batch_layout.h"

namespace batchloom::store {

/// Labels [begin, end) of a sample, or of a piece, count in the loss; label i is token i + 1.
struct LabelInterval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const LabelInterval&, const LabelInterval&) = default;
};
inline constexpr std::size_t kLabelIntervalBytes = 8;

/// How many labels a stretch of tokens has: that of its last token is the one that follows it.
/// Precondition: at least 1 token.
constexpr std::uint32_t existing_labels(std::uint32_t tokens, bool has_next_token) {
  return has_next_token ? tokens : tokens - 1;
}

/// How much of each column is a piece's. Its tensors' sizes stand beside.
struct PieceCounts {
  std::uint32_t tokens = 0;
  std::uint32_t label_intervals = 0;
  std::uint32_t tensors = 0;
};

/// Where a piece's bytes lie.
struct PieceSlices {
  Slice tokens, next_token, labels;
  std::vector<Slice> tensors;

  /// Calls visit(slice) for each in the order of the columns, in which the piece's CRC covers them.
  template <class Visit>
  void for_each(Visit visit) const {
    visit(tokens);
    visit(next_token);
    visit(labels);
    for (const Slice& tensor : tensors) visit(tensor);
  }
};

/// Where a micro-batch's columns lie.
struct MicroBatchColumns {
  Slice tokens, next_tokens, labels;
  std::vector<Slice> tensors;
  std::uint64_t end = 0;  ///< Where the next micro-batch, or the run's end, is.
};

/// Preconditions: `begin` is a multiple of kColumnAlignBytes; the pieces' `tensors` add up to
/// tensor_sizes.size(), and each size is at most kTensorMaxBytes. Cannot overflow with fewer than
/// 2^28 pieces and tensors: a section that holds their rows is below 2 GiB, as FlatBuffers are.
MicroBatchColumns lay_out(std::uint64_t begin, TokenWidth width,
                          std::span<const PieceCounts> pieces,
                          std::span<const std::uint64_t> tensor_sizes);

/// Cuts a micro-batch's columns into its pieces, one after the other. Borrows the columns.
class PieceWalk {
 public:
  PieceWalk(const MicroBatchColumns& columns, TokenWidth width);

  /// Precondition: `counts` are those of the next piece that lay_out() was given.
  PieceSlices next(const PieceCounts& counts);

 private:
  static Slice take(std::uint64_t& at, std::uint64_t size_bytes);

  const MicroBatchColumns& columns_;
  const std::uint64_t token_bytes_;
  std::uint64_t tokens_at_;
  std::uint64_t next_token_at_;
  std::uint64_t labels_at_;
  std::size_t tensor_ = 0;
};

}  // namespace batchloom::store
