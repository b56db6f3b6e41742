// SPDX-License-Identifier: Apache-2.0
// What befalls the processes of a StoreWorld.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/store_world_state.h"

namespace batchloom::simulator {
namespace {

// Without an end after so many picks the world hangs, by any measure.
constexpr std::uint64_t kOverduePoints = 150'000;
// A suspended process is looked after this often, and resumed after so many picks at the latest.
constexpr std::uint64_t kSuspensionCheckPoints = 50;
constexpr std::uint64_t kSuspensionMaxPoints = 2'500;
// In so many of 1,000 cases it is a reclaimer's process.
constexpr std::uint64_t kSuspendReclaimerPerMille = 300;

}  // namespace

void StoreWorld::schedule_chaos() {
  schedule(Trouble::Kind::kCrash, scenario_.crashes, &StoreWorld::crash_one);
  schedule(Trouble::Kind::kSuspension, scenario_.suspensions, &StoreWorld::suspend_one);
  schedule(Trouble::Kind::kRival, scenario_.rivals, &StoreWorld::start_rival);
  world_.post_later(scenario_.chaos_points, [this] { heal(); });
  world_.post_later(kOverduePoints, [this] { check_overdue(); });
}

void StoreWorld::schedule(Trouble::Kind kind, std::uint64_t count, void (StoreWorld::*effect)()) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Trouble trouble{.kind = kind, .ordinal = i};
    const std::uint64_t when = world_.random().below(scenario_.chaos_points);
    if (is_left_out(trouble)) continue;
    world_.post_later(when, [this, trouble, effect] {
      if (healed_ || finishing()) return;
      troubles_.push_back(trouble);
      (this->*effect)();
    });
  }
}

bool StoreWorld::is_left_out(const Trouble& trouble) const {
  return std::ranges::find(options_.without, trouble) != options_.without.end();
}

std::vector<SimProcess*> StoreWorld::victims() const {
  std::vector<SimProcess*> alive;
  for (const auto& connection : connections_) {
    SimProcess* process = connection->process;
    if (process->live_threads() > 0 && !process->crashed() && !process->suspended())
      alive.push_back(process);
  }
  return alive;
}

void StoreWorld::crash_one() {
  const std::vector<SimProcess*> alive = victims();
  if (alive.empty()) return;
  alive[world_.random().below(alive.size())]->crash();
}

void StoreWorld::suspend_one() {
  std::vector<SimProcess*> alive = victims();
  // Whoever decides on old facts does the most harm: reclaimers more often than others.
  if (world_.random().chance(kSuspendReclaimerPerMille)) {
    std::erase_if(alive,
                  [](SimProcess* process) { return !process->name().starts_with(kReclaimerName); });
  }
  if (alive.empty()) return;
  SimProcess& victim = *alive[world_.random().below(alive.size())];
  victim.suspend();
  const std::uint64_t whole_passes = world_.random().below(3);
  resume_after_reclamation(victim, reclamations_ + whole_passes,
                           world_.points() + kSuspensionMaxPoints);
}

void StoreWorld::resume_after_reclamation(SimProcess& process, std::uint64_t reclamations,
                                          std::uint64_t latest_points) {
  world_.post_later(1 + world_.random().below(kSuspensionCheckPoints), [=, this, &process] {
    if (reclamations_ > reclamations || world_.points() > latest_points || healed_ || finishing()) {
      process.resume();
    } else {
      resume_after_reclamation(process, reclamations, latest_points);
    }
  });
}

void StoreWorld::start_rival() {
  const auto& sources = scenario_.sources;
  const std::string& name = sources[world_.random().below(sources.size())].producer;
  if (!is_done(name)) start_producer(name);
}

void StoreWorld::heal() {
  healed_ = true;
  store_.heal();
  for (const auto& connection : connections_) connection->process->resume();
}

void StoreWorld::check_overdue() {
  if (world_.points() < kOverduePoints)
    return;  // Nothing else was left to happen: the world has ended well.
  violations_.add("L1", fmt::format("no end after {} picks", world_.points()));
  heal();
  for (const SourceShape& source : scenario_.sources) mark_done(source.producer);
  mark_complete();
  for (Trainer& trainer : trainers_) {
    for (std::size_t rank = 0; rank < trainer.shape().consumers; ++rank) trainer.finish(rank);
  }
  for (const auto& connection : connections_) connection->process->crash();
}

}  // namespace batchloom::simulator
