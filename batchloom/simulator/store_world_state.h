// SPDX-License-Identifier: Apache-2.0
// Inside of store_world.h: the world that actors live in.
#pragma once

#include <functional>
#include <set>

#include "batchloom/simulator/store_world.h"

namespace batchloom::simulator {

/// A process and its way to the store.
struct Connection {
  SimProcess* process = nullptr;
  bool before_heal = true;  ///< It began while requests met faults.
  std::unique_ptr<objstore::ObjectStore> client;
  std::unique_ptr<objstore::RetryingStore> objects;
};

/// Built, run once and read by one thread; in between, only the baton's holder calls it.
class StoreWorld {
 public:
  explicit StoreWorld(const StoreWorldOptions& options);

  StoreRun run();

  // For actors:
  const StoreScenario& scenario() const { return scenario_; }
  const StoreHistory& history() const { return history_; }
  StoreJudge& judge() { return judge_; }
  /// All producers are done: whoever loops should come to an end.
  bool finishing() const { return done_.size() == scenario_.producers; }
  void mark_done(const std::string& producer) { done_.insert(producer); }
  void reclaimed() { ++reclamations_; }
  /// A process has come to its end, in this way.
  void ended(const Connection& connection, const Status& status);
  Result<std::unique_ptr<store::Stream>> open_stream(const Connection& connection);

 private:
  using Body = std::function<void(StoreWorld&, const Connection&)>;

  const Connection& connect(const std::string& name);
  void make_stream();
  void start_actors();
  /// Runs `body` as a process; starts another one when it has ended before the world is finishing.
  void start_process(const std::string& name, const Body& body);
  void start_producer(const std::string& name);

  void schedule_chaos();
  void schedule(Trouble::Kind kind, std::uint64_t count, void (StoreWorld::*effect)());
  bool is_left_out(const Trouble& trouble) const;
  std::vector<SimProcess*> victims() const;
  void crash_one();
  void suspend_one();
  void resume_after_reclamation(SimProcess& process, std::uint64_t reclamations,
                                std::uint64_t latest_points);
  void start_rival();
  void heal();
  void check_overdue();

  void audit();
  void audit_leftovers();
  StoreRun report() const;

  const StoreWorldOptions options_;
  const StoreScenario scenario_;
  Violations violations_;
  StoreHistory history_;
  StoreJudge judge_;
  Counters counters_;
  store::StreamOptions stream_options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  SimStore store_;

  bool healed_ = false;
  std::set<std::string> done_;
  std::uint64_t processes_ = 0;
  std::uint64_t reclamations_ = 0;
  std::optional<TracePoint> first_use_;
  std::vector<Trouble> troubles_;
  SimWorld world_;  // Last: its destructor ends threads that use all of the above.
};

// The actors. Each is the main thread of a process and returns when its work is done or its process
// should start again.
void run_producer(StoreWorld& world, const Connection& connection, const std::string& name);
void run_reclaimer(StoreWorld& world, const Connection& connection);
void run_observer(StoreWorld& world, const Connection& connection);

}  // namespace batchloom::simulator
