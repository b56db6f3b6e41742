// SPDX-License-Identifier: Apache-2.0
// Batch objects for tests: random payloads for plans, and what a reader must find of them.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/store/batch_builder.h"
#include "batchloom/store/batch_index.h"
#include "batchloom/store/head.h"
#include "batchloom/store/run.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// A plan with payloads. Movable, not to be copied: `samples` borrow the other members.
struct TestStep {
  model::StepPlan plan;
  std::vector<Bytes> tokens;                // By sample.
  std::vector<std::vector<Bytes>> tensors;  // By sample.
  std::vector<SampleContent> samples;
  std::vector<model::SampleMeta> origins;

  StepContent content() const { return {&plan, samples, origins}; }
};

/// Random payloads that fit to `plan`, with as many valid labels as it says; a function of its
/// arguments. Masks, look-ahead, records' ends, tensors and patches all occur.
TestStep make_step(model::StepPlan plan, TokenWidth width, std::uint64_t seed);

/// A plan of one micro-batch on one rank, which holds `samples` whole samples of so many tokens.
struct PackedShape {
  std::uint32_t samples = 1;
  std::uint32_t tokens = 1;
};
model::StepPlan packed_plan(const PackedShape& shape);

/// What a random batch is made from.
struct BatchShape {
  std::uint64_t seed = 0;
  std::uint32_t steps = 1;
  std::uint32_t ranks = 1;
  std::uint32_t samples = 4;  ///< At most, of each step.
  TokenWidth width = TokenWidth::k16;

  friend std::ostream& operator<<(std::ostream& out, const BatchShape& shape);
};

struct TestBatch {
  BatchOptions options;
  std::vector<TestStep> steps;

  /// Aborts where build_batch() refuses it.
  BuiltBatch build() const;
};

/// Random plans (model::random_plan) and payloads; a function of `shape`.
TestBatch random_batch(const BatchShape& shape);

/// Shapes of both widths with packs of 1 to 4, 1 to 5 ranks and up to 12 samples, that shrink
/// toward few.
rc::Gen<BatchShape> any_batch_shape();

/// A pack of 2 small steps for 2 ranks: a ring, a pack, a filler, masks, tensors.
TestBatch small_batch(TokenWidth width = TokenWidth::k16);

/// Of term 3 and seq 7 of the producer "p" in the stream test_uuid(1).
BatchIdentity test_identity();

Bytes object_of(const BuiltBatch& batch);
/// As a reader knows the object.
BatchContext context_of(const BatchIdentity& identity, const BuiltBatch& batch);
/// How a head would refer to the object, if it were committed at step 40.
Entry entry_of(const BatchIdentity& identity, const BuiltBatch& batch);
/// Puts `object`, whatever it is, where the entry's object is looked for.
void put_object(objstore::ObjectStore& objects, const Entry& entry, ByteSpan object);

/// All rows of the object's run table, by rank and step.
std::vector<std::vector<RunRow>> rows_of(const BatchContext& context, ByteSpan object);

/// Whether a reader got what was put in: ok, or `internal` saying what differs.
Status compare_run(const Run& run, const TestBatch& batch, std::uint32_t position,
                   model::HdpRank rank);
Status compare_piece(const RunPiece& piece, const TestStep& step, TokenWidth width,
                     std::uint32_t number);
Status compare_index(const BatchIndex& index, const TestBatch& batch);

}  // namespace batchloom::store
