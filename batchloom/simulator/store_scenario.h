// SPDX-License-Identifier: Apache-2.0
// What one seed simulates: sizes, actors, faults. Drawn from the seed, so that rare shapes meet
// rare faults.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/objstore/faults.h"
#include "batchloom/store/limits.h"

namespace batchloom::simulator {

struct StoreScenario {
  store::Limits limits;  ///< Tiny.
  std::uint64_t producers = 1;
  std::uint64_t records = 20;            ///< Of each producer's source.
  std::uint64_t pack_max = 1;            ///< Steps in one batch object.
  std::uint64_t commit_batches_max = 1;  ///< Batches in one commit.
  std::uint64_t state_padding_bytes = 0;
  bool ordered = false;                ///< Producers upload from several threads, in ordered mode.
  std::uint64_t finish_per_mille = 0;  ///< A producer that is done leaves the table of producers.
  std::uint64_t late_points = 0;       ///< Producers join at a random point up to this one.
  std::uint64_t reclaimers = 1;
  std::uint64_t observers = 1;
  std::uint64_t crashes = 0;
  std::uint64_t suspensions = 0;
  std::uint64_t rivals = 0;           ///< Second processes under a running producer's name.
  std::uint64_t chaos_points = 3000;  ///< Nothing goes wrong after so many picks.
  std::vector<objstore::FaultRate> fault_rates;
};

StoreScenario draw_store_scenario(std::uint64_t seed);

}  // namespace batchloom::simulator
