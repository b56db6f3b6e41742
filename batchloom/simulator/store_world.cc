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
      sources_(scenario_.sources),
      inspector_(sources_),
      history_(scenario_.limits, inspector_, violations_),
      judge_(history_, violations_),
      store_(world_, make_plan(options_, scenario_), history_),
      world_(options.seed) {
  history_.watch(store_.objects());
  for (const TrainerShape& shape : scenario_.trainers) {
    trainers_.emplace_back(fmt::format("g{}", trainers_.size()), shape);
  }
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

bool StoreWorld::finishing() const {
  return produced() && complete_ && std::ranges::all_of(trainers_, [](const Trainer& trainer) {
           return trainer.is_finished();
         });
}

void StoreWorld::start_actors() {
  for (const SourceShape& source : scenario_.sources) {
    world_.post_later(world_.random().below(scenario_.late_points),
                      [this, name = source.producer] { start_producer(name); });
  }
  const auto finishing = [this] { return this->finishing(); };
  for (std::uint64_t i = 0; i < scenario_.reclaimers; ++i)
    start_process({std::string(kReclaimerName), run_reclaimer, finishing});
  for (std::uint64_t i = 0; i < scenario_.observers; ++i)
    start_process({"observer", run_observer, finishing});
  start_process({"operator", run_operator, finishing});
  start_trainers();
}

void StoreWorld::start_trainers() {
  for (Trainer& trainer : trainers_) {
    const std::uint64_t when = world_.random().below(trainer.shape().late_points);
    for (std::size_t rank = 0; rank < trainer.shape().consumers; ++rank) {
      const Actor consumer{fmt::format("{}.{}", trainer.group(), rank),
                           [&trainer, rank](StoreWorld& world, const Connection& connection) {
                             run_consumer(world, connection, trainer, rank);
                           },
                           [&trainer, rank] { return trainer.is_finished(rank); }};
      world_.post_later(when, [this, consumer] { start_process(consumer); });
    }
  }
}

void StoreWorld::start_process(const Actor& actor) {
  const Connection& connection = connect(fmt::format("{}.{}", actor.name, processes_++));
  connection.process->start("main", [this, &connection, actor] {
    actor.body(*this, connection);
    if (actor.is_over()) return;
    world_.post_later(1 + world_.random().below(200), [this, actor] {
      if (!actor.is_over()) start_process(actor);
    });
  });
}

void StoreWorld::start_producer(const std::string& name) {
  start_process({name,
                 [name](StoreWorld& world, const Connection& connection) {
                   run_producer(world, connection, name);
                 },
                 [this, name] { return is_done(name); }});
}

bool StoreWorld::is_distorted(const Connection& connection) const {
  constexpr objstore::Fault kDistortions[] = {
      objstore::Fault::kShortBody, objstore::Fault::kWrongRange, objstore::Fault::kBitFlip};
  return connection.before_heal &&
         std::ranges::any_of(scenario_.fault_rates, [&](const auto& rate) {
           return std::ranges::count(kDistortions, rate.fault) > 0;
         });
}

void StoreWorld::ended(const Connection& connection, const Status& status) {
  if (status.is_ok()) return;
  judge_.process_ended(connection.process->name(), status, is_distorted(connection));
}

StoreRun run_store_world(const StoreWorldOptions& options) {
  return StoreWorld(options).run();
}

}  // namespace batchloom::simulator
