// SPDX-License-Identifier: Apache-2.0
#include "cli/content_sum.h"

#include "batchloom/base/hash.h"

namespace batchloom::cli {
namespace {

constexpr std::uint64_t kNoLabel = UINT64_MAX;

/// A piece's ids, its look-ahead behind them.
class Ids {
 public:
  Ids(const store::RunPiece& piece, store::TokenWidth width)
      : piece_(piece), width_(static_cast<std::size_t>(width)) {}

  std::size_t size() const { return piece_.tokens.size() / width_; }
  std::uint64_t operator[](std::size_t i) const {
    const std::byte* at = i < size() ? piece_.tokens.data() + i * width_ : piece_.next_token.data();
    return width_ == 2 ? load_le<std::uint16_t>(at) : load_le<std::uint32_t>(at);
  }

 private:
  const store::RunPiece& piece_;
  const std::size_t width_;
};

/// Per token of the piece: whether its label counts.
std::vector<bool> counted_labels(const store::RunPiece& piece, std::size_t tokens) {
  std::vector<bool> counts(tokens, piece.all_labels);
  for (const store::LabelInterval& labels : piece.labels) {
    for (std::uint32_t i = labels.begin; i < labels.end; ++i) counts[i] = true;
  }
  if (!piece.has_next_token) counts.back() = false;
  return counts;
}

std::uint64_t sum_of(const store::RunPiece& piece, store::TokenWidth width) {
  const Ids ids(piece, width);
  const std::vector<bool> counts = counted_labels(piece, ids.size());
  const std::uint64_t sample = model::hash_of(piece.sample);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t label = counts[i] ? ids[i + 1] : kNoLabel;
    sum += mix64(mix64(mix64(sample ^ (piece.lo + i)) ^ ids[i]) ^ label);
  }
  return sum;
}

}  // namespace

std::uint64_t content_sum(const std::vector<store::RunMicroBatch>& micro_batches,
                          store::TokenWidth width) {
  std::uint64_t sum = 0;
  for (const store::RunMicroBatch& micro_batch : micro_batches) {
    for (const store::RunPiece& piece : micro_batch.pieces) sum += sum_of(piece, width);
  }
  return sum;
}

}  // namespace batchloom::cli
