// SPDX-License-Identifier: Apache-2.0
// Fetching some pieces of a step, for readers whose topology is not the plan's.
//
//  1. The slices of all pieces, in the order in which they lie, become ranges: what lies within
//     kJoinGapBytes of each other is one request, because a request costs more than such a gap.
//  2. Each range is fetched into a buffer of its own.
//  3. Each piece is verified. A piece's slices may lie in several ranges and its CRC covers all of
//     them, so that of a damaged piece all ranges are fetched again, once.
#pragma once

#include <span>
#include <vector>

#include "batchloom/store/batch_reader.h"

namespace batchloom::store {

inline constexpr std::uint64_t kJoinGapBytes = std::uint64_t{64} << 10;

/// Ascending ranges that cover `slices`, which may come in any order; each begins at a multiple of
/// kColumnAlignBytes, so that ids in it are aligned like in a run. Precondition: the gap allowed is
/// at least that.
std::vector<Slice> join_slices(std::vector<Slice> slices, std::uint64_t gap_max_bytes);

/// What is fetched to get these pieces of a step. Preconditions: the index has the position, and
/// the position the pieces.
std::vector<Slice> piece_ranges(const BatchIndex& index, std::uint32_t position,
                                std::span<const std::uint32_t> pieces);

/// See BatchReader::read_pieces(). Preconditions: the index is the object's, and has the position.
Result<FetchedPieces> fetch_pieces(const Stream& stream, const BatchContext& object,
                                   const BatchIndex& index, std::uint32_t position,
                                   std::span<const std::uint32_t> pieces, const CallOptions& call);

}  // namespace batchloom::store
