// SPDX-License-Identifier: Apache-2.0
// The header of a run as plain values, and its stored form: a frame around a FlatBuffer
// (batch_object.fbs). Included by the builder, run.cc and tests only.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/store/codec.h"
#include "batchloom/store/piece_rows.h"
#include "batchloom/store/run.h"

namespace batchloom::store {

/// The plan's part, and what the bytes are.
struct RunPieceRow {
  model::SampleId sample;
  std::uint32_t sample_tokens = 0;
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;
  std::uint64_t first_position = 0;
  PieceFacts facts;

  std::uint32_t tokens() const { return hi - lo; }
  friend bool operator==(const RunPieceRow&, const RunPieceRow&) = default;
};

/// Owns the next `members` of RunHeader::members and the next `pieces` of its pieces.
struct RunMicroBatchRow {
  std::uint32_t task = 0;
  model::OffloadRatio offload;
  std::uint32_t members = 0;
  std::uint32_t pieces = 0;
  friend bool operator==(const RunMicroBatchRow&, const RunMicroBatchRow&) = default;
};

struct RunHeader {
  BatchIdentity identity;
  std::uint32_t position = 0;
  model::HdpRank rank;
  TokenWidth token_width = TokenWidth::k32;
  std::uint64_t samples_digest = 0;
  std::uint64_t plan_digest = 0;
  std::uint64_t global_valid_labels = 0;
  std::vector<RunMicroBatchRow> micro_batches;
  std::vector<model::HdpRank> members;
  std::vector<RunPieceRow> pieces;
  std::vector<PieceTensor> tensors;  ///< Piece by piece.
  std::vector<RunEvent> events;
  friend bool operator==(const RunHeader&, const RunHeader&) = default;
};

/// Upper bound of the encoded header's size.
std::uint64_t encoded_bound(const RunHeader& header);

/// Precondition: encoded_bound() is below kSectionMaxBytes.
Encoded encode_run_header(const RunHeader& header);

/// The header whose frame is exactly `framed`; its CRC stands in the row. Errors as of
/// decode_run(); offsets count from the frame.
Result<RunHeader> decode_run_header(const FrameContext& context, ByteSpan framed);

/// No framed section (run header, index) is larger: FlatBuffers ends at 2 GiB.
inline constexpr std::uint64_t kSectionMaxBytes = std::uint64_t{1} << 30;

}  // namespace batchloom::store
