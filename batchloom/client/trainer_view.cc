// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/trainer_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace batchloom::client {
namespace {

using store::RunMicroBatch;
using store::RunPiece;

constexpr std::uint64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kArrayAlignBytes = 64;

/// Rows of a micro-batch's arrays.
struct Rows {
  std::size_t tokens = 0;
  std::size_t pieces = 0;
};

Rows rows_of(const RunMicroBatch& micro_batch) {
  if (micro_batch.pieces.empty()) return {.tokens = 1, .pieces = 1};
  Rows rows{.tokens = 0, .pieces = micro_batch.pieces.size()};
  for (const RunPiece& piece : micro_batch.pieces) rows.tokens += piece.hi - piece.lo;
  return rows;
}

std::uint64_t end_position(const RunPiece& piece) {
  return piece.first_position + piece.hi;
}

Status check_sizes(const RunMicroBatch& micro_batch) {
  if (rows_of(micro_batch).tokens > kInt32Max) {
    return Status::invalid(
        fmt::format("the micro-batch of task {} has {} tokens, and int32 offsets"
                    " reach {}: plan with a smaller capacity",
                    micro_batch.task, rows_of(micro_batch).tokens, kInt32Max));
  }
  for (const RunPiece& piece : micro_batch.pieces) {
    if (piece.first_position <= kInt32Max && end_position(piece) - 1 <= kInt32Max) continue;
    return Status::invalid(
        fmt::format("sample {} goes on to position {} of its record, and int32 "
                    "positions reach {}: cut the source's records",
                    to_string(piece.sample), end_position(piece) - 1, kInt32Max));
  }
  return Status::ok();
}

/// Takes arrays from a buffer, one behind the other; without a buffer, only their bytes.
class ArrayLayout {
 public:
  explicit ArrayLayout(std::byte* begin) : begin_(begin) {}

  MicroBatchArrays next(const Rows& rows) {
    MicroBatchArrays arrays;
    arrays.tokens = array<std::int32_t>(rows.tokens);
    arrays.labels = array<std::int64_t>(rows.tokens);
    arrays.positions = array<std::int32_t>(rows.tokens);
    arrays.cu_seqlens = array<std::int32_t>(rows.pieces + 1);
    return arrays;
  }

  std::size_t size_bytes() const { return size_bytes_; }

 private:
  template <class T>
  std::span<T> array(std::size_t size) {
    const std::size_t at = size_bytes_;
    size_bytes_ += (size * sizeof(T) + kArrayAlignBytes - 1) / kArrayAlignBytes * kArrayAlignBytes;
    if (begin_ == nullptr) return {};
    return {reinterpret_cast<T*>(begin_ + at), size};
  }

  std::byte* begin_;
  std::size_t size_bytes_ = 0;
};

std::size_t arrays_bytes(const StepBatch& step) {
  ArrayLayout layout(nullptr);
  for (const RunMicroBatch& micro_batch : step.micro_batches) layout.next(rows_of(micro_batch));
  return layout.size_bytes();
}

/// A fixed number of tokens at once, and outputs that do not overlap: compilers turn that into
/// vectors. In loops of any length g++ does so from -O3 on alone.
constexpr std::uint32_t kLanes = 16;

/// kLanes tokens, all of whose labels count or none, into rows that begin at these places. All bits
/// of the ids in one. The ids go on for one more.
template <class Id, bool kCount>
Id widen(const std::byte* ids, std::int32_t position, std::int32_t* __restrict tokens,
         std::int64_t* __restrict labels, std::int32_t* __restrict positions) {
  const auto id = [ids](std::uint32_t i) { return load_le<Id>(ids + i * sizeof(Id)); };
  Id bits = 0;
  for (std::uint32_t i = 0; i < kLanes; ++i) tokens[i] = static_cast<std::int32_t>(id(i));
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    labels[i] = kCount ? static_cast<std::int64_t>(id(i + 1)) : kNoLabel;
  }
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    positions[i] = position + static_cast<std::int32_t>(i);
  }
  for (std::uint32_t i = 0; i < kLanes; ++i) bits = static_cast<Id>(bits | id(i));
  return bits;
}

/// One piece into the rows of the arrays that begin at its first token. `Id` is how ids are stored.
template <class Id>
class PieceFill {
 public:
  PieceFill(const RunPiece& piece, std::size_t at, const MicroBatchArrays& arrays)
      : piece_(piece),
        size_(piece.hi - piece.lo),
        position_(static_cast<std::int32_t>(piece.first_position + piece.lo)),
        tokens_(arrays.tokens.data() + at),
        labels_(arrays.labels.data() + at),
        positions_(arrays.positions.data() + at) {}

  /// The ids' bits, all in one: whether one of them has the highest is seen at the end.
  Id run() {
    if (piece_.all_labels) {
      copy<true>(0, store::existing_labels(size_, piece_.has_next_token));
    } else {
      for (const store::LabelInterval& counts : piece_.labels) {
        copy<false>(done_, counts.begin);
        copy<true>(counts.begin, counts.end);
      }
    }
    copy<false>(done_, size_);
    return bits_;
  }

 private:
  const std::byte* ids_from(std::uint32_t i) const { return piece_.tokens.data() + i * sizeof(Id); }
  Id id(std::uint32_t i) const { return load_le<Id>(ids_from(i)); }

  /// Tokens [begin, end), whose labels count or do not.
  template <bool kCount>
  void copy(std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t inside = std::min(end, size_ - 1);  // Whose label is in the piece.
    Id bits = 0;
    std::uint32_t i = begin;
    for (; i + kLanes <= inside; i += kLanes) {
      bits |= widen<Id, kCount>(ids_from(i), position_ + static_cast<std::int32_t>(i), tokens_ + i,
                                labels_ + i, positions_ + i);
    }
    for (; i < inside; ++i) bits |= copy_one(i, kCount ? std::int64_t{id(i + 1)} : kNoLabel);
    bits_ |= bits;
    if (begin < end && end == size_) copy_last(kCount);
    done_ = std::max(done_, end);
  }

  Id copy_one(std::uint32_t i, std::int64_t label) {
    tokens_[i] = static_cast<std::int32_t>(id(i));
    labels_[i] = label;
    positions_[i] = position_ + static_cast<std::int32_t>(i);
    return id(i);
  }

  void copy_last(bool counts) {
    const Id look_ahead = load_le<Id>(piece_.next_token.data());
    bits_ |= copy_one(size_ - 1, counts ? std::int64_t{look_ahead} : kNoLabel);
    bits_ |= look_ahead;
  }

  const RunPiece& piece_;
  const std::uint32_t size_;
  const std::int32_t position_;
  std::int32_t* const tokens_;
  std::int64_t* const labels_;
  std::int32_t* const positions_;
  std::uint32_t done_ = 0;
  Id bits_ = 0;
};

Status ids_too_large(const RunPiece& piece) {
  return Status::invalid(fmt::format("sample {} holds token ids above {}, and trainers take int32",
                                     to_string(piece.sample), kInt32Max));
}

template <class Id>
Status fill(const RunMicroBatch& micro_batch, const MicroBatchArrays& arrays) {
  std::size_t at = 0;
  std::size_t place = 0;
  arrays.cu_seqlens[0] = 0;
  for (const RunPiece& piece : micro_batch.pieces) {
    const Id bits = PieceFill<Id>(piece, at, arrays).run();
    if (bits > kInt32Max) return ids_too_large(piece);
    at += piece.hi - piece.lo;
    arrays.cu_seqlens[++place] = static_cast<std::int32_t>(at);
  }
  return Status::ok();
}

void fill_filler(const MicroBatchArrays& arrays) {
  arrays.tokens[0] = 0;
  arrays.labels[0] = kNoLabel;
  arrays.positions[0] = 0;
  arrays.cu_seqlens[0] = 0;
  arrays.cu_seqlens[1] = 1;
}

}  // namespace

Result<TrainerView> view_for_trainer(StepPtr step, BufferPool& pool) {
  for (const RunMicroBatch& micro_batch : step->micro_batches) {
    BL_RETURN_IF_ERROR(check_sizes(micro_batch));
  }
  TrainerView view;
  view.buffer = pool.take(arrays_bytes(*step));
  ArrayLayout layout(view.buffer.bytes().data());
  for (const RunMicroBatch& micro_batch : step->micro_batches) {
    const MicroBatchArrays arrays = layout.next(rows_of(micro_batch));
    if (micro_batch.pieces.empty()) {
      fill_filler(arrays);
    } else if (step->token_width == store::TokenWidth::k16) {
      BL_RETURN_IF_ERROR(fill<std::uint16_t>(micro_batch, arrays));
    } else {
      BL_RETURN_IF_ERROR(fill<std::uint32_t>(micro_batch, arrays));
    }
    view.micro_batches.push_back(arrays);
  }
  view.step = std::move(step);
  return view;
}

}  // namespace batchloom::client
