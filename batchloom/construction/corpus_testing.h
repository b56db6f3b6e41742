// SPDX-License-Identifier: Apache-2.0
// Made-up records for tests: what planning knows of them, the blocks that a loader would make of
// them, and what every rank must get, reckoned token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/construction/constructor.h"
#include "batchloom/construction/record_cut.h"
#include "batchloom/construction/sample_block.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/planning/planner.h"
#include "batchloom/store/run.h"

namespace batchloom::construction {

struct CorpusShape {
  std::uint64_t seed = 0;
  std::uint32_t sources = 3;
  std::uint32_t records = 20;  ///< Of each source.
  std::uint32_t longest = 90;  ///< Tokens of a record.
  std::uint32_t vocab = 1000;
  CutRule rule = {.max_sample_tokens = 40};
  std::uint64_t step_tokens = 300;
  std::uint32_t capacity_tokens = 48;
  bool pictures = true;
};

/// Masks and pictures are those of one record in two or three. Immutable; thread-safe.
class Corpus final : public planning::Metadata {
 public:
  explicit Corpus(const CorpusShape& shape);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  std::span<const planning::SourceRecords> sources() const override { return sources_; }
  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override;
  Result<model::SampleMeta> describe(const planning::Part& part) override;

  const CorpusShape& shape() const { return shape_; }
  /// All sources by equal weights, each record once, laid out by `balance`.
  planning::GraphSpec graph(planning::Balance balance) const;
  /// The first `count` steps, or all there are.
  std::vector<planning::PlannedStep> plan(planning::Balance balance, std::string_view axes,
                                          std::size_t count);

  /// One block per source that the step has samples of; a function of the step.
  std::vector<BlockPtr> load(const planning::PlannedStep& step) const {
    return load(step.step, step.members);
  }
  std::vector<BlockPtr> load(model::Step step, std::span<const model::SampleMeta> members) const;
  StepInput input(const planning::PlannedStep& step) const { return {step, load(step)}; }
  /// A job per step, from batch 0 on, with states that say how many there were.
  std::vector<ConstructionJob> jobs(std::span<const planning::PlannedStep> steps) const;
  std::shared_ptr<const ObjectOptions> options() const;

  /// What is wrong with what ranks got of a step; empty where nothing is: each token of each member
  /// once, with its id, position, label and pictures, and fillers that nobody counts.
  std::string problem(const planning::PlannedStep& step,
                      std::span<const std::vector<store::RunMicroBatch>> ranks,
                      store::TokenWidth width) const;

 private:
  struct Record {
    std::vector<std::uint32_t> tokens;
    std::optional<std::vector<LearnedInterval>> mask;
    std::vector<Bytes> pixels;
    std::vector<RecordTensor> pictures;  ///< Of `pixels`.

    RecordContent content() const {
      return {TokenSpan(tokens), mask ? LossMask(*mask) : std::nullopt, pictures};
    }
  };

  const Record& record_of(const model::SampleId& id) const;
  std::string problem_of(const model::SampleMeta& member, const store::RunPiece& piece,
                         store::TokenWidth width) const;

  CorpusShape shape_;
  std::vector<planning::SourceRecords> sources_;
  std::vector<std::vector<Record>> records_;
};

}  // namespace batchloom::construction
