// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/check.h"
#include "batchloom/simulator/store_world_state.h"

namespace batchloom::simulator {
namespace {

objstore::FaultPlan make_plan(const StoreWorldOptions& options, const StoreScenario& scenario) {
  objstore::FaultSettings settings{
      .seed = options.seed, .rates = scenario.fault_rates, .script = {}, .suppressed = {}};
  for (const Trouble& trouble : options.without) {
    if (trouble.kind == Trouble::Kind::kNetwork) settings.suppressed.push_back(trouble.call);
  }
  auto plan = objstore::FaultPlan::make(settings);
  BL_CHECK(plan.is_ok(), plan.status().to_string());
  return *std::move(plan);
}

}  // namespace

StoreWorld::StoreWorld(const StoreWorldOptions& options)
    : options_(options),
      scenario_(draw_store_scenario(options.seed)),
      history_(scenario_.limits, violations_),
      judge_(history_, violations_),
      store_(world_, make_plan(options_, scenario_), history_),
      world_(options.seed) {
  history_.watch(store_.objects());
  stream_options_.limits = scenario_.limits;
  stream_options_.safeguards.broken = options_.broken;
  const auto watched = options_.broken ? options_.broken : options_.watched;
  stream_options_.safeguards.on_use = [this, watched](store::Safeguard used) {
    if (used == watched && !first_use_)
      first_use_ = TracePoint{world_.points(), world_.trace_hash()};
  };
}

const Connection& StoreWorld::connect(const std::string& name) {
  SimProcess& process = world_.add_process(name);
  auto client = store_.connect(process);
  auto objects = std::make_unique<objstore::RetryingStore>(*client, process, counters_);
  connections_.push_back(std::make_unique<Connection>(
      Connection{&process, !healed_, std::move(client), std::move(objects)}));
  return *connections_.back();
}

Result<std::unique_ptr<store::Stream>> StoreWorld::open_stream(const Connection& connection) {
  return store::Stream::open({*connection.process, *connection.objects, counters_}, stream_options_,
                             {});
}

StoreRun StoreWorld::run() {
  make_stream();
  start_actors();
  schedule_chaos();
  const Status ended = world_.run();
  if (!ended.is_ok()) violations_.add("L1", ended.to_string());
  if (violations_.empty()) audit();
  return report();
}

void StoreWorld::make_stream() {
  const Connection& maker = connect("init");
  maker.process->start("init", [this, &maker] {
    const store::StreamDeps deps{*maker.process, *maker.objects, counters_};
    while (!store::init_stream(deps, "simulator", {}).is_ok()) {
    }
  });
  const Status ended = world_.run();
  BL_CHECK(ended.is_ok(), ended.to_string());
}

void StoreWorld::start_actors() {
  for (std::uint64_t i = 0; i < scenario_.producers; ++i) {
    world_.post_later(world_.random().below(scenario_.late_points),
                      [this, name = fmt::format("p{}", i)] { start_producer(name); });
  }
  for (std::uint64_t i = 0; i < scenario_.reclaimers; ++i)
    start_process("reclaimer", run_reclaimer);
  for (std::uint64_t i = 0; i < scenario_.observers; ++i) start_process("observer", run_observer);
}

void StoreWorld::start_process(const std::string& name, const Body& body) {
  const Connection& connection = connect(fmt::format("{}.{}", name, processes_++));
  connection.process->start("main", [this, &connection, name, body] {
    body(*this, connection);
    if (finishing()) return;
    world_.post_later(1 + world_.random().below(200), [this, name, body] {
      if (!finishing()) start_process(name, body);
    });
  });
}

void StoreWorld::start_producer(const std::string& name) {
  start_process(name, [name](StoreWorld& world, const Connection& connection) {
    run_producer(world, connection, name);
  });
}

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
  // Every event has a row, also where it never happened.
  for (const auto& [event, counter] : std::initializer_list<std::pair<const char*, const char*>>{
           {"commit", "store_commits"},
           {"lost_race", "store_commit_lost_races"},
           {"unknown", "store_commit_unknown"},
           {"fence", "store_fences"},
           {"dropped_item", "store_commit_dropped_items"},
           {"seal_level_0", "store_seals_level_0"},
           {"seal_level_1", "store_seals_level_1"},
           {"seal_level_2", "store_seals_level_2"},
           {"slot_removed", "store_reclaimed_slots"},
           {"orphaned_segment_removed", "store_reclaimed_segments"},
           {"orphaned_state_removed", "store_reclaimed_states"},
           {"rediscovery", "store_manifest_rediscoveries"}}) {
    const auto counts = counters_.snapshot();
    const auto found = counts.find(counter);
    run.events[event] = found == counts.end() ? 0 : found->second;
  }
  run.events["dead_slot_created"] = history_.dead_slots();
  for (const Trouble::Kind kind :
       {Trouble::Kind::kCrash, Trouble::Kind::kSuspension, Trouble::Kind::kRival}) {
    run.events[std::string(to_string(kind))] =
        static_cast<std::uint64_t>(std::ranges::count(troubles_, kind, &Trouble::kind));
  }
  return run;
}

void StoreWorld::ended(const Connection& connection, const Status& status) {
  if (status.is_ok()) return;
  // Distorted reads may look like damage three times in a row.
  const bool distorted =
      connection.before_heal && std::ranges::any_of(scenario_.fault_rates, [](const auto& rate) {
        return rate.operation == objstore::Operation::kGet;
      });
  judge_.process_ended(connection.process->name(), status, distorted);
}

StoreRun run_store_world(const StoreWorldOptions& options) {
  return StoreWorld(options).run();
}

}  // namespace batchloom::simulator
