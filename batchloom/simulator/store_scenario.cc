// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_scenario.h"

#include <fmt/format.h>

#include <algorithm>

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
  limits.inline_membership_max_bytes = random.chance(700) ? 0 : 100;
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

std::vector<SourceShape> draw_sources(Random& random) {
  std::vector<SourceShape> sources(between(random, 1, 4));
  const std::uint64_t pack_max = between(random, 1, 4);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].producer = fmt::format("p{}", i);
    sources[i].steps_per_object = static_cast<std::uint32_t>(between(random, 1, pack_max));
    sources[i].ring = random.chance(300);
  }
  return sources;
}

/// `stored_ranks`: every step has at least so many.
TrainerShape draw_trainer(Random& random, std::uint32_t stored_ranks) {
  TrainerShape trainer;
  trainer.consumers = static_cast<std::uint32_t>(between(random, 1, 2));
  const bool anew = trainer.consumers > stored_ranks || random.chance(250);
  if (anew) trainer.ranks = static_cast<std::uint32_t>(between(random, trainer.consumers, 3));
  trainer.checkpoint_steps = between(random, 3, 8);
  trainer.checkpoints_kept = between(random, 1, 2);
  trainer.prefetch_bytes = random.chance(500) ? between(random, 1, 4000) : 100'000;
  trainer.report_steps = static_cast<std::uint32_t>(between(random, 1, 6));
  return trainer;
}

void draw_chaos(Random& random, StoreScenario& scenario) {
  scenario.crashes = random.chance(700) ? between(random, 1, 6) : 0;
  scenario.suspensions = random.chance(700) ? between(random, 1, 6) : 0;
  scenario.rivals = random.chance(700) ? between(random, 1, 4) : 0;
  scenario.chaos_points = between(random, 1500, 5000);
  scenario.fault_rates = draw_fault_rates(random);
}

}  // namespace

StoreScenario draw_store_scenario(std::uint64_t seed) {
  Random random(mix64(seed ^ 0x5ce9a210));
  StoreScenario scenario;
  scenario.limits = draw_limits(random);
  scenario.sources = draw_sources(random);
  scenario.objects = between(random, 10, 18) / scenario.sources.size();
  scenario.commit_batches_max = between(random, 1, 3);
  scenario.state_padding_bytes = random.chance(500) ? between(random, 0, 40) : 0;
  scenario.ordered = random.chance(250);
  scenario.finish_per_mille = random.chance(500) ? 1000 : 0;
  scenario.late_points = random.chance(500) ? 2000 : 50;
  scenario.reclaimers = random.chance(700) ? 2 : 1;
  scenario.observers = random.chance(500) ? 1 : 0;
  scenario.ranks = static_cast<std::uint32_t>(between(random, 1, kMostRanks));
  scenario.other_ranks = static_cast<std::uint32_t>(between(random, 1, kMostRanks));
  scenario.operations = random.chance(600) ? between(random, 1, 4) : 0;
  scenario.memberships = random.chance(700) ? between(random, 1, 5) : 0;
  const std::uint64_t trainers = random.chance(300) ? 2 : 1;
  for (std::uint64_t i = 0; i < trainers; ++i) {
    scenario.trainers.push_back(
        draw_trainer(random, std::min(scenario.ranks, scenario.other_ranks)));
    scenario.trainers.back().late_points = i == 0 ? 50 : between(random, 50, 2500);
  }
  draw_chaos(random, scenario);
  return scenario;
}

}  // namespace batchloom::simulator
