// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_scenario.h"

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"

namespace batchloom::simulator {
namespace {

// In [low, high].
std::uint64_t between(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random.below(high - low + 1);
}

store::Limits draw_limits(Random& random) {
  store::Limits limits;
  limits.tail_entries = between(random, 2, 8);
  limits.arity = between(random, 2, 4);
  limits.slots_kept = between(random, 2, 8);
  limits.inline_state_max_bytes = random.chance(500) ? 8 : 256;
  limits.inline_state_bytes = between(random, 0, 4) * 20;
  // Room for a few rows only, now and then: finished producers have to make way.
  if (random.chance(300)) limits.producer_bytes = 700;
  return limits;
}

// Each fault of each operation is absent, rare or frequent.
std::vector<objstore::FaultRate> draw_fault_rates(Random& random) {
  std::vector<objstore::FaultRate> rates;
  if (random.chance(100)) return rates;
  for (const objstore::Operation operation : objstore::kAllOperations) {
    for (const objstore::Fault fault : objstore::kAllFaults) {
      if (!objstore::applies_to(fault, operation)) continue;
      constexpr double kProbabilities[] = {0, 0, 0, 0.005, 0.02, 0.06};
      const double probability = kProbabilities[random.below(std::size(kProbabilities))];
      if (probability > 0)
        rates.push_back({.fault = fault, .operation = operation, .probability = probability});
    }
  }
  return rates;
}

}  // namespace

StoreScenario draw_store_scenario(std::uint64_t seed) {
  Random random(mix64(seed ^ 0x5ce9a210));
  StoreScenario scenario;
  scenario.limits = draw_limits(random);
  scenario.producers = between(random, 1, 4);
  scenario.records = between(random, 60, 120) / scenario.producers;
  scenario.pack_max = between(random, 1, 4);
  scenario.commit_batches_max = between(random, 1, 3);
  scenario.state_padding_bytes = random.chance(500) ? between(random, 0, 40) : 0;
  scenario.ordered = random.chance(250);
  scenario.finish_per_mille = random.chance(500) ? 1000 : 0;
  scenario.late_points = random.chance(500) ? 2000 : 50;
  scenario.reclaimers = between(random, 1, 2);
  scenario.observers = between(random, 1, 2);
  scenario.crashes = random.chance(700) ? between(random, 1, 6) : 0;
  scenario.suspensions = random.chance(700) ? between(random, 1, 6) : 0;
  scenario.rivals = random.chance(700) ? between(random, 1, 4) : 0;
  scenario.chaos_points = between(random, 1500, 5000);
  scenario.fault_rates = draw_fault_rates(random);
  return scenario;
}

}  // namespace batchloom::simulator
