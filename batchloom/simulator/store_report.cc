// SPDX-License-Identifier: Apache-2.0
// What a StoreWorld has to say of its run. Every event has a row, also where it never happened.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/store_world_state.h"

namespace batchloom::simulator {

StoreRun StoreWorld::report() const {
  StoreRun run{.violations = violations_.texts(),
               .points = world_.points(),
               .trace_hash = world_.trace_hash(),
               .first_use = first_use_,
               .events = {},
               .troubles = troubles_};
  for (const objstore::FaultCall& call : store_.faulted_calls()) {
    run.troubles.push_back({.kind = Trouble::Kind::kNetwork, .ordinal = 0, .call = call});
  }
  for (const objstore::Fault fault : objstore::kAllFaults) {
    run.events[fmt::format("fault_{}", to_string(fault))] =
        store_.injected()[objstore::index_of(fault)];
  }
  for (const Trouble::Kind kind :
       {Trouble::Kind::kCrash, Trouble::Kind::kSuspension, Trouble::Kind::kRival}) {
    run.events[std::string(to_string(kind))] =
        static_cast<std::uint64_t>(std::ranges::count(troubles_, kind, &Trouble::kind));
  }
  report_counters(run);
  report_counts(run);
  return run;
}

/// What the product's own code has counted.
void StoreWorld::report_counters(StoreRun& run) const {
  constexpr std::pair<const char*, const char*> kCounters[] = {
      {"commit", "store_commits"},
      {"lost_race", "store_commit_lost_races"},
      {"unknown", "store_commit_unknown"},
      {"fence", "store_fences"},
      {"dropped_item", "store_commit_dropped_items"},
      {"seal_level_0", "store_seals_level_0"},
      {"seal_level_1", "store_seals_level_1"},
      {"seal_level_2", "store_seals_level_2"},
      {"slot_removed", "store_reclaimed_slots"},
      {"orphaned_state_removed", "store_reclaimed_states"},
      {"orphaned_membership_removed", "store_reclaimed_memberships"},
      {"rediscovery", "store_manifest_rediscoveries"},
      {"intent_lost", "store_trim_intents_lost"},
      {"consumer_reread", "client_rereads"}};
  const auto counted = counters_.snapshot();
  for (const auto& [event, counter] : kCounters) {
    const auto found = counted.find(counter);
    run.events[event] = found == counted.end() ? 0 : found->second;
  }
}

/// What the rules and the actors have seen.
void StoreWorld::report_counts(StoreRun& run) const {
  const HistoryCounts& history = history_.counts();
  const JudgeCounts& judge = judge_.counts();
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"dead_slot_created", history.dead_slots},
      {"intent", history.intents},
      {"intent_withdrawn", history.withdrawals},
      {"trim", history.trims},
      {"skip", history.skips},
      {"end", history.ends},
      {"reopen", history.reopenings},
      {"topology", history.topologies},
      {"membership", history.memberships},
      {"membership_replaced", history.replaced_memberships},
      {"orphaned_batch_removed", history.orphaned_batches_removed},
      {"trimmed_batch_removed", history.trimmed_batches_removed},
      {"orphaned_segment_removed", history.orphaned_segments_removed},
      {"trimmed_segment_removed", history.trimmed_segments_removed},
      {"live_cursor_report", history_.pins().reports()},
      {"refused_commit", judge.refused_commits},
      {"refused_membership", judge.refused_memberships},
      {"membership_read", judge.memberships_read},
      {"pin", judge.pins},
      {"refused_pin", judge.refused_pins},
      {"consumer_step", counts_.consumer_steps},
      {"consumer_resume", counts_.resumes},
      {"consumer_seek", counts_.seeks},
      {"consumer_at_end", counts_.ends},
      {"trimmed_answer", counts_.trimmed_answers}};
  for (const auto& [event, count] : counts) run.events[event] = count;
}

}  // namespace batchloom::simulator
