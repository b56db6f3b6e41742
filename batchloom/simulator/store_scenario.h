// SPDX-License-Identifier: Apache-2.0
// What one seed simulates: sizes, actors, faults. Drawn from the seed, so that rare shapes meet
// rare faults.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/objstore/faults.h"
#include "batchloom/simulator/batch_sources.h"
#include "batchloom/store/limits.h"

namespace batchloom::simulator {

/// A group of consumers that train together.
struct TrainerShape {
  std::uint32_t consumers = 1;  ///< Ranks; a process each.
  /// HDP ranks that steps are laid out for anew; 0: read as they are stored.
  std::uint32_t ranks = 0;
  std::uint64_t late_points = 0;  ///< It joins at a random point up to this one.
  std::uint64_t checkpoint_steps = 4;
  std::size_t checkpoints_kept = 1;
  std::uint64_t prefetch_bytes = 0;
  std::uint32_t report_steps = 4;
};

struct StoreScenario {
  store::Limits limits;                  ///< Tiny.
  std::vector<SourceShape> sources;      ///< One for each producer.
  std::uint64_t objects = 10;            ///< Batch objects of each producer.
  std::uint64_t commit_batches_max = 1;  ///< Batches in one commit.
  std::uint64_t state_padding_bytes = 0;
  bool ordered = false;                ///< Producers upload from several threads, in ordered mode.
  std::uint64_t finish_per_mille = 0;  ///< A producer that is done leaves the table of producers.
  std::uint64_t late_points = 0;       ///< Producers join at a random point up to this one.
  std::uint64_t reclaimers = 1;
  std::uint64_t observers = 1;
  std::vector<TrainerShape> trainers;
  std::uint32_t ranks = 1;        ///< HDP ranks that producers plan for at first,
  std::uint32_t other_ranks = 1;  ///< and that the operator may set.
  std::uint64_t operations = 0;   ///< Of the operator: SKIPs, ENDs, topologies.
  std::uint64_t memberships = 0;  ///< That producers set.
  std::uint64_t crashes = 0;
  std::uint64_t suspensions = 0;
  std::uint64_t rivals = 0;           ///< Second processes under a running producer's name.
  std::uint64_t chaos_points = 3000;  ///< Nothing goes wrong after so many picks.
  std::vector<objstore::FaultRate> fault_rates;
};

StoreScenario draw_store_scenario(std::uint64_t seed);

}  // namespace batchloom::simulator
