// SPDX-License-Identifier: Apache-2.0
// What run headers and the index both say of pieces, and how it is stored. Included by codec
// sources, the builder and tests only.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/store/codec_rows.h"
#include "batchloom/store/piece_layout.h"
#include "batchloom/store/tensor.h"

namespace batchloom::store::fb {
struct Tensor;
}  // namespace batchloom::store::fb

namespace batchloom::store {

/// A piece's bytes, as its row tells them.
struct PieceFacts {
  std::uint32_t label_intervals = 0;
  std::uint32_t tensors = 0;
  bool all_labels = false;
  bool has_next_token = false;
  std::uint32_t crc = 0;

  PieceCounts counts(std::uint32_t tokens) const { return {tokens, label_intervals, tensors}; }
  friend bool operator==(const PieceFacts&, const PieceFacts&) = default;
};

std::uint32_t encode_flags(const PieceFacts& facts);
/// Facts of a piece of `tokens` tokens: known flags, and no more label intervals than fit.
/// `corruption` at `row`.
Result<PieceFacts> decode_facts(const Origin& origin, const void* row, std::uint32_t tokens,
                                std::uint32_t flags, const PieceFacts& counts_and_crc);

flatbuffers::Offset<TableVector<fb::Tensor>> encode_tensors(flatbuffers::FlatBufferBuilder& builder,
                                                            std::span<const PieceTensor> tensors);
/// Tensors that tensor_bytes() accepts.
Result<std::vector<PieceTensor>> decode_tensors(const Origin& origin,
                                                const TableVector<fb::Tensor>& rows);
/// Ok where the tensors of a piece belong to tokens of it, in order.
Status check_tensor_tokens(const Origin& origin, const void* row, std::uint32_t tokens,
                           std::span<const PieceTensor> tensors);
/// Upper bound of what `tensors` add to a payload.
std::uint64_t encoded_bound(std::span<const PieceTensor> tensors);

/// Bytes of each. Precondition: tensor_bytes() accepts them.
std::vector<std::uint64_t> tensor_sizes(std::span<const PieceTensor> tensors);

/// Ok where the elements lie as their type needs it: the verifier of FlatBuffers 2.0 looks at the
/// alignment of a vector's length only.
template <class Element>
Status check_alignment(const Origin& origin, const Element* first, const void* row,
                       std::size_t size) {
  if (size == 0 || reinterpret_cast<std::uintptr_t>(first) % alignof(Element) == 0) {
    return Status::ok();
  }
  return origin.corrupt(row, "the rows of a vector are not aligned");
}
template <class Struct>
Status check_alignment(const Origin& origin, const StructVector<Struct>& rows) {
  return check_alignment(origin, reinterpret_cast<const Struct*>(rows.Data()), &rows, rows.size());
}

/// Hands out rows that belong to owners which state how many they own; says whether all fit.
class RowCounter {
 public:
  explicit RowCounter(std::uint64_t rows) : rows_(rows) {}
  /// Whether `count` more rows are there; takes them where they are.
  bool take(std::uint64_t count) {
    if (count > rows_ - taken_) return false;
    taken_ += count;
    return true;
  }
  std::uint64_t taken() const { return taken_; }
  bool all_taken() const { return taken_ == rows_; }

 private:
  std::uint64_t rows_;
  std::uint64_t taken_ = 0;
};

}  // namespace batchloom::store
