// SPDX-License-Identifier: Apache-2.0
// Batches that follow from a few numbers: what a producer writes and what every rank must get of it
// are both computed from the configuration, so that nobody has to ask the store what is right.
//
//  1. Object `seq` of a producer holds `steps_per_object` steps, and each step `ranks` x
//     `records_per_run` short samples, whole, on one rank each; with `ring`, also one long sample
//     that lies on all ranks. Samples do not depend on `ranks` where ranks x records_per_run and
//     long_tokens do not: the same step can then be laid out for another topology.
//  2. Samples are numbered through: the records of a producer are 0, 1, 2, ... in the order of
//     (seq, step in the object, place in the plan), each once.
//  3. Token ids come from a fixed pool of random ones, at a place that follows from the sample.
//     Some samples end their record, some have labels that do not count.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batchloom/store/batch_builder.h"
#include "batchloom/store/run.h"

namespace batchloom::simulator {

struct SyntheticConfig {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 8;
  std::uint32_t steps_per_object = 1;
  std::uint32_t records_per_run = 4;  ///< Short samples per rank and step.
  std::uint32_t record_tokens = 512;  ///< Of a short sample.
  bool ring = false;                  ///< Add a long sample to each step.
  /// Of the long sample, a multiple of `ranks`; 0: ranks x record_tokens.
  std::uint32_t long_tokens = 0;
  store::TokenWidth token_width = store::TokenWidth::k16;
  model::SourceId source;  ///< The producer's: several on one stream take several.
  /// Places in the pool of random token ids where a sample may begin. Filling it takes time.
  std::uint32_t pool_places = 1U << 16;
};

/// Immutable; thread-safe.
class SyntheticBatches {
 public:
  /// `invalid` for a number that is 0 or too large.
  static Result<std::unique_ptr<SyntheticBatches>> create(const SyntheticConfig& config);
  ~SyntheticBatches();

  /// What build_batch() takes for one object. Borrows the token pool of its maker.
  struct Object {
    std::vector<model::StepPlan> plans;
    std::vector<std::vector<store::SampleContent>> samples;
    std::vector<std::vector<model::SampleMeta>> origins;

    std::vector<store::StepContent> steps() const;
  };
  Object object(store::Seq seq) const;
  /// The plan of the step at `position` of object `seq`.
  model::StepPlan plan(store::Seq seq, std::uint32_t position) const;
  store::BatchOrigin origin() const;
  const SyntheticConfig& config() const { return config_; }

  /// The hash of what `rank` must get of the step at `position` of object `seq`.
  std::uint64_t expected_hash(store::Seq seq, std::uint32_t position, model::HdpRank rank) const;

  /// Samples of one step.
  std::uint32_t samples_per_step() const;

 private:
  struct Pool;
  SyntheticBatches(const SyntheticConfig& config, std::unique_ptr<Pool> pool);

  std::vector<store::SampleContent> contents(const model::StepPlan& plan) const;

  const SyntheticConfig config_;
  std::unique_ptr<Pool> pool_;
};

/// What a rank trains on in one step. Borrowed.
struct RankContent {
  std::uint64_t global_valid_labels = 0;  ///< Of the step: what the loss is divided by.
  std::span<const store::RunMicroBatch> micro_batches;
  std::span<const store::RunEvent> events;
};

/// XXH3-64 over all of it: the count of labels; per micro-batch its offload and ring, per piece
/// sample, interval, position, tokens, look-ahead, labels and tensors with type and shape; the
/// order in which the rank runs them.
std::uint64_t content_hash(const RankContent& content);

}  // namespace batchloom::simulator
