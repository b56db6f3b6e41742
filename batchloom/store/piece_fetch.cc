// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "batchloom/store/batch_range.h"
#include "batchloom/store/piece_verify.h"

namespace batchloom::store {
namespace {

class PieceFetch {
 public:
  PieceFetch(const Stream& stream, const BatchContext& object, const BatchIndex& index,
             std::uint32_t position, std::span<const std::uint32_t> pieces)
      : stream_(stream),
        object_(object),
        index_(index),
        step_(index.steps[position]),
        indexed_(index.pieces[position]),
        position_(position),
        pieces_(pieces) {}

  Result<FetchedPieces> run(const CallOptions& call);

 private:
  Status check_pieces() const;
  Status fetch(std::size_t range, const CallOptions& call);
  Result<RunPiece> verify(std::uint32_t piece) const;
  Result<std::vector<RunPiece>> verify_again(const std::set<std::size_t>& ranges,
                                             const CallOptions& call);
  std::set<std::size_t> ranges_of(std::uint32_t piece) const;
  /// Precondition: the slice is not empty.
  std::size_t range_of(const Slice& slice) const;
  ByteSpan bytes_of(const Slice& slice) const;

  const Stream& stream_;
  const BatchContext& object_;
  const BatchIndex& index_;
  const IndexedStep& step_;
  const std::vector<IndexedPiece>& indexed_;
  const std::uint32_t position_;
  const std::span<const std::uint32_t> pieces_;
  std::vector<Slice> ranges_;
  std::vector<std::shared_ptr<const Bytes>> buffers_;  // By range.
};

Status PieceFetch::check_pieces() const {
  for (const std::uint32_t piece : pieces_) {
    if (piece < indexed_.size()) continue;
    return Status::invalid(fmt::format("{}: step {} has {} pieces, and none of number {}",
                                       object_.key, position_, indexed_.size(), piece));
  }
  return Status::ok();
}

Status PieceFetch::fetch(std::size_t range, const CallOptions& call) {
  using Part = std::shared_ptr<const Bytes>;
  BL_ASSIGN_OR_RETURN(buffers_[range],
                      read_range(stream_, object_, ranges_[range], call,
                                 [](Part bytes) -> Result<Part> { return bytes; }));
  return Status::ok();
}

std::size_t PieceFetch::range_of(const Slice& slice) const {
  const auto after =
      std::ranges::upper_bound(ranges_, slice.offset_bytes, {}, &Slice::offset_bytes);
  return static_cast<std::size_t>(after - ranges_.begin()) - 1;
}

ByteSpan PieceFetch::bytes_of(const Slice& slice) const {
  if (slice.size_bytes == 0) return {};
  const std::size_t range = range_of(slice);
  return ByteSpan(*buffers_[range])
      .subspan(slice.offset_bytes - ranges_[range].offset_bytes, slice.size_bytes);
}

std::set<std::size_t> PieceFetch::ranges_of(std::uint32_t piece) const {
  std::set<std::size_t> ranges;
  indexed_[piece].slices.for_each([&](const Slice& slice) {
    if (slice.size_bytes > 0) ranges.insert(range_of(slice));
  });
  return ranges;
}

Result<RunPiece> PieceFetch::verify(std::uint32_t piece) const {
  const IndexedPiece& indexed = indexed_[piece];
  const model::Piece& planned = step_.plan.pieces[piece];
  const model::PlanSample& sample = step_.plan.samples[planned.sample.value];
  const RunPieceRow row{.sample = sample.id,
                        .sample_tokens = sample.tokens,
                        .lo = planned.lo,
                        .hi = planned.hi,
                        .first_position = sample.first_position,
                        .facts = {.all_labels = indexed.all_labels,
                                  .has_next_token = indexed.has_next_token,
                                  .crc = indexed.crc}};
  return verify_piece({.place = {.key = object_.key},
                       .row = row,
                       .tensors = indexed.tensors,
                       .slices = indexed.slices},
                      [this](const Slice& slice) { return bytes_of(slice); });
}

/// All pieces, once `ranges` were fetched again: a piece that was right may point into them.
Result<std::vector<RunPiece>> PieceFetch::verify_again(const std::set<std::size_t>& ranges,
                                                       const CallOptions& call) {
  for (const std::size_t range : ranges) {
    stream_.counters().counter("store_batch_rereads").add();
    BL_RETURN_IF_ERROR(fetch(range, call));
  }
  std::vector<RunPiece> pieces;
  pieces.reserve(pieces_.size());
  for (const std::uint32_t piece : pieces_) {
    BL_ASSIGN_OR_RETURN(RunPiece verified, verify(piece));
    pieces.push_back(std::move(verified));
  }
  return pieces;
}

Result<FetchedPieces> PieceFetch::run(const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_pieces());
  ranges_ = piece_ranges(index_, position_, pieces_);
  buffers_.resize(ranges_.size());
  for (std::size_t range = 0; range < ranges_.size(); ++range) {
    BL_RETURN_IF_ERROR(fetch(range, call));
  }
  FetchedPieces fetched;
  fetched.pieces.reserve(pieces_.size());
  std::set<std::size_t> again;
  for (const std::uint32_t piece : pieces_) {
    Result<RunPiece> verified = verify(piece);
    if (verified.is_ok()) {
      fetched.pieces.push_back(std::move(verified).value());
    } else {
      again.merge(ranges_of(piece));
    }
  }
  if (!again.empty()) {
    BL_ASSIGN_OR_RETURN(fetched.pieces, verify_again(again, call));
  }
  fetched.buffers = std::move(buffers_);
  return fetched;
}

}  // namespace

std::vector<Slice> join_slices(std::vector<Slice> slices, std::uint64_t gap_max_bytes) {
  std::erase_if(slices, [](const Slice& slice) { return slice.size_bytes == 0; });
  std::ranges::sort(slices, {}, &Slice::offset_bytes);
  std::vector<Slice> ranges;
  for (const Slice& slice : slices) {
    if (!ranges.empty() && slice.offset_bytes <= ranges.back().end() + gap_max_bytes) {
      const std::uint64_t end = std::max(ranges.back().end(), slice.end());
      ranges.back().size_bytes = end - ranges.back().offset_bytes;
      continue;
    }
    const std::uint64_t begin = slice.offset_bytes / kColumnAlignBytes * kColumnAlignBytes;
    ranges.push_back({.offset_bytes = begin, .size_bytes = slice.end() - begin});
  }
  return ranges;
}

std::vector<Slice> piece_ranges(const BatchIndex& index, std::uint32_t position,
                                std::span<const std::uint32_t> pieces) {
  std::vector<Slice> slices;
  for (const std::uint32_t piece : pieces) {
    index.pieces[position][piece].slices.for_each(
        [&](const Slice& slice) { slices.push_back(slice); });
  }
  return join_slices(std::move(slices), kJoinGapBytes);
}

Result<FetchedPieces> fetch_pieces(const Stream& stream, const BatchContext& object,
                                   const BatchIndex& index, std::uint32_t position,
                                   std::span<const std::uint32_t> pieces, const CallOptions& call) {
  return PieceFetch(stream, object, index, position, pieces).run(call);
}

}  // namespace batchloom::store
