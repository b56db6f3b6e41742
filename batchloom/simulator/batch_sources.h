// SPDX-License-Identifier: Apache-2.0
// What the producers of a simulated world write, and so what everybody else must find there.
//
//  1. Each producer has a source of its own. Batch object `seq` holds its next records: as many in
//     each object, and six short samples in each step (plus one long one with `ring`).
//  2. Any step can be laid out for 1, 2 or 3 HDP ranks; its samples are the same ones.
//  3. So records, contents and plans of an object follow from its producer, its sequence number and
//     its ranks; nobody has to ask the store what is right.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "batchloom/simulator/synthetic.h"
#include "batchloom/store/batch_index.h"
#include "batchloom/store/head.h"

namespace batchloom::simulator {

/// Steps are laid out for 1 up to so many HDP ranks.
inline constexpr std::uint32_t kMostRanks = 3;

struct SourceShape {
  std::string producer;
  std::uint32_t steps_per_object = 1;
  bool ring = false;
};

/// What one rank must get of one step.
struct ExpectedStep {
  std::uint64_t content_hash = 0;
  std::uint64_t samples_digest = 0;
  std::uint64_t plan_digest = 0;
  std::uint64_t global_valid_labels = 0;
};

/// A rank among how many: which part of a step is meant.
struct RankOf {
  model::HdpRank rank;
  std::uint32_t ranks = 1;
};

/// Immutable; thread-safe. The preconditions of all: the producer has a source (has()), and ranks
/// are from 1 to kMostRanks.
class BatchSources {
 public:
  explicit BatchSources(std::span<const SourceShape> shapes);

  bool has(std::string_view producer) const { return sources_.contains(producer); }
  const SyntheticBatches& of(std::string_view producer, std::uint32_t ranks) const;
  std::uint64_t records_per_object(std::string_view producer) const;

  /// What a rank must get of the step at `position` of an object, which has that step.
  ExpectedStep expected(const store::Entry& entry, std::uint32_t position,
                        const RankOf& part) const;
  /// How many tokens that is.
  std::uint64_t tokens(const store::Entry& entry, std::uint32_t position, const RankOf& part) const;

  /// The plan of the same step for `ranks`; `invalid` for samples of no source here.
  Result<model::StepPlan> plan_anew(const store::IndexedStep& step, std::uint32_t ranks) const;

 private:
  using Layouts = std::array<std::unique_ptr<SyntheticBatches>, kMostRanks>;  // By ranks - 1.

  std::map<std::string, Layouts, std::less<>> sources_;
  std::vector<std::string> by_source_;  // The producer of each SourceId.
};

}  // namespace batchloom::simulator
