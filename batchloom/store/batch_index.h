// SPDX-License-Identifier: Apache-2.0
// The last section of a batch object: all that a reader needs who does not follow the plan's
// topology, or who asks where the samples came from. It holds no payload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/store/batch_layout.h"
#include "batchloom/store/piece_layout.h"
#include "batchloom/store/tensor.h"

namespace batchloom::store {

/// What the index says of a whole object, so that a later plan of the same samples is exact. No
/// name is longer than kOriginNameMaxBytes.
struct BatchOrigin {
  struct Source {
    std::string name;
    std::uint64_t digest = 0;  ///< Of what its records are: files, tokenizer, fields.
    friend bool operator==(const Source&, const Source&) = default;
  };
  std::vector<Source> sources;  ///< By SourceId; each sample's is among them.
  std::string planner = {};     ///< Name and version.
  std::uint64_t planner_digest = 0;
  std::uint32_t capacity_tokens = 0;    ///< 0: it says nothing.
  std::uint32_t max_sample_tokens = 0;  ///< No sample of the stream is longer; 0: it says nothing.
  /// Of hdp: the smallest share of a ring that plans make (0: it says nothing), and whether they
  /// may keep activations on the host.
  std::uint32_t min_share_tokens = 0;
  bool offload = false;
  std::string cost_model = {};  ///< Its name.
  Bytes cost_table = {};        ///< Its content, opaque here.
  friend bool operator==(const BatchOrigin&, const BatchOrigin&) = default;
};

inline constexpr std::size_t kOriginNameMaxBytes = 255;

/// A step as the index has it.
struct IndexedStep {
  model::StepPlan plan;                    ///< One that check_plan() accepts.
  std::vector<model::SampleMeta> origins;  ///< By plan.samples.
  friend bool operator==(const IndexedStep&, const IndexedStep&) = default;
};

/// Where a piece's bytes lie, and what they mean.
struct IndexedPiece {
  PieceSlices slices;
  bool has_next_token = false;       ///< As in RunPiece.
  bool all_labels = false;           ///< As in RunPiece.
  std::vector<PieceTensor> tensors;  ///< By slices.tensors.
  std::uint32_t crc = 0;             ///< Over its slices, in the order of the columns.
};

/// A verified index. Immutable.
struct BatchIndex {
  BatchIdentity identity;
  TokenWidth token_width = TokenWidth::k32;
  BatchOrigin origin;
  std::vector<IndexedStep> steps;
  std::vector<std::vector<IndexedPiece>> pieces;  ///< By step, then by plan.pieces.
};

/// The index, whose bytes begin at `offset_bytes` of the object. Checks frame and structure, the
/// plans (check_plan), that all rows fit to the plans, and that the micro-batches lie one behind
/// the other among the runs. `corruption`, or `invalid` for a version or codec from the future,
/// naming key, offset and reason. Linear time and memory in the size of `bytes`.
Result<BatchIndex> decode_batch_index(const BatchContext& object, std::uint64_t offset_bytes,
                                      ByteSpan bytes);

}  // namespace batchloom::store
