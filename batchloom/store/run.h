// SPDX-License-Identifier: Apache-2.0
// A run: what one HDP rank reads of one step, verified.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/store/batch_layout.h"
#include "batchloom/store/piece_layout.h"
#include "batchloom/store/run_table.h"
#include "batchloom/store/tensor.h"

namespace batchloom::store {

/// A piece as a rank gets it. Spans point into the run's bytes. `tokens` and `next_token` lie at
/// multiples of the token width in memory, tensors at multiples of 16: columns begin at multiples
/// of 64 from the buffer's start, which operator new aligns to 16.
struct RunPiece {
  model::SampleId sample;
  std::uint32_t sample_tokens = 0;
  std::uint32_t lo = 0;  ///< Tokens [lo, hi) of the sample.
  std::uint32_t hi = 0;
  std::uint64_t first_position = 0;  ///< Of the sample's token 0 in its record.
  bool has_next_token = false;       ///< False at the end of a record: the last label is none.
  std::uint32_t crc = 0;             ///< Over the piece's slice of every column.
  ByteSpan tokens;                   ///< hi - lo ids, little-endian.
  ByteSpan next_token;               ///< The look-ahead: one id; zero where there is none.
  bool all_labels = false;           ///< All labels that exist count, and `labels` is empty.
  /// Relative to the piece; ascending and apart. Empty without `all_labels`: no label counts.
  std::vector<LabelInterval> labels;
  struct Tensor {
    std::uint32_t token = 0;  ///< Relative to the piece.
    TensorInfo info;
    ByteSpan bytes;
  };
  std::vector<Tensor> tensors;  ///< By ascending token.
};

struct RunMicroBatch {
  std::uint32_t task = 0;  ///< In the plan.
  model::OffloadRatio offload;
  std::vector<model::HdpRank> ring;  ///< Members of its task, in ring order.
  std::vector<RunPiece> pieces;      ///< Empty: a filler.
};

/// A phase of one of the run's micro-batches, in the order in which the rank runs them.
struct RunEvent {
  std::uint32_t micro_batch = 0;
  model::Phase phase = model::Phase::kForward;
  friend bool operator==(const RunEvent&, const RunEvent&) = default;
};

/// One rank's part of one step. Immutable; the spans borrow `bytes`.
struct Run {
  std::shared_ptr<const Bytes> bytes;  ///< Shared by the runs of one request.
  BatchIdentity identity;
  std::uint32_t position = 0;  ///< Of the step in the object.
  model::HdpRank rank;
  TokenWidth token_width = TokenWidth::k32;
  std::uint64_t samples_digest = 0;  ///< Of the step's sample ids, in the plan's order.
  std::uint64_t plan_digest = 0;
  std::uint64_t global_valid_labels = 0;
  std::vector<RunMicroBatch> micro_batches;
  std::vector<RunEvent> events;  ///< Each micro-batch forward, and later backward.
};

/// XXH3-64 over (source, epoch, index, part) of each sample, little-endian: what samples_digest is.
std::uint64_t samples_digest(std::span<const model::PlanSample> samples);

/// What a run must turn out to be.
struct ExpectedRun {
  std::string_view key;  ///< Of the object, for messages.
  BatchIdentity identity;
  std::uint32_t position = 0;
  model::HdpRank rank;
  RunRow row;
};

/// Verifies every byte of [row.offset_bytes, + row.size_bytes) that stands at `begin` in `bytes`:
/// header, columns, padding. `corruption`, or `invalid` for a version or codec from the future,
/// naming key, offset and reason. Linear time.
Result<Run> decode_run(const ExpectedRun& expected, std::shared_ptr<const Bytes> bytes,
                       std::size_t begin);

}  // namespace batchloom::store
