// SPDX-License-Identifier: Apache-2.0
// The short samples of one rank as micro-batches of its pipeline: how many, how large, and in which
// order, so that the rank is through early.
//
// 1F1B hides the filling of a pipeline where the first micro-batches grow, and its draining where
// the last ones shrink: a bubble is as long as the first and the last one, not as the mean. So a
// sequence is tried for each number of packs and each way of growing and shrinking:
//
//   pack i of n holds a share of min((i + 1) / (grow + 1), (n - i) / (shrink + 1), 1)
//
// of the tokens of a full one. Packs of a rank with gangs go before and after these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/pipeline_tasks.h"

namespace batchloom::planning {

/// Of one layer. Samples are named by their place in HdpProblem::shorts.
struct RankPack {
  std::vector<std::uint32_t> items;
  PhaseTimes phases;
};

struct RankSequence {
  std::vector<RankPack> before;  ///< Its gangs; empty where it has none.
  std::vector<RankPack> after;
  std::uint64_t end_ns = 0;  ///< If no other rank held it up.
};

struct SequenceEffort {
  std::uint32_t more_packs = 4;  ///< Than are needed, at most.
  std::uint32_t grow = 3;
  std::uint32_t shrink = 4;
  std::uint32_t before = 0;  ///< Packs before the gangs, at most.
};

/// One thread at a time.
class RankSequencer {
 public:
  /// All outlive it.
  RankSequencer(const PipelineCosts& pipeline, const HdpCosts& costs, const HdpProblem& problem);

  /// `items` descend; `gangs` in their order.
  RankSequence best(std::span<const std::uint32_t> items, std::span<const PhaseTimes> gangs,
                    const SequenceEffort& effort);

 private:
  struct Pattern {
    std::uint32_t packs = 0;
    std::uint32_t grow = 0;
    std::uint32_t shrink = 0;
    std::uint32_t before = 0;
  };

  bool fill(std::span<const std::uint32_t> items, const Pattern& pattern);
  void fill_first_fit(std::span<const std::uint32_t> items);
  void put(std::uint32_t item, std::size_t pack);
  void time_packs();
  std::uint64_t end_ns(std::span<const PhaseTimes> gangs, std::uint32_t before);
  void keep(std::span<const PhaseTimes> gangs, std::uint32_t before, RankSequence& best);

  struct Pack {
    std::uint32_t tokens = 0;
    std::int64_t room = 0;  ///< Of what the pattern gives it.
    std::uint64_t attention_ns = 0;
    std::uint64_t attention_forward_ns = 0;
  };

  const PipelineCosts& pipeline_;
  const HdpCosts& costs_;
  const HdpProblem& problem_;
  LonePipeline lone_;
  std::vector<std::uint64_t> attention_forward_ns_;  // By short sample.
  std::vector<Pack> packs_;
  std::vector<PhaseTimes> phases_;      // By pack.
  std::vector<std::uint32_t> pack_of_;  // By place in the items.
  std::vector<PhaseTimes> tasks_;
};

}  // namespace batchloom::planning
