// SPDX-License-Identifier: Apache-2.0
// Inside of store_world.h: the world that actors live in.
#pragma once

#include <functional>
#include <set>

#include "batchloom/simulator/store_world.h"
#include "batchloom/simulator/trainer.h"

namespace batchloom::simulator {

/// A process and its way to the store.
struct Connection {
  SimProcess* process = nullptr;
  bool before_heal = true;  ///< It began while requests met faults.
  std::unique_ptr<objstore::ObjectStore> client;
  std::unique_ptr<objstore::RetryingStore> objects;
};

/// How often actors were told what.
struct ActorCounts {
  std::uint64_t consumer_steps = 0;
  std::uint64_t trimmed_answers = 0;
  std::uint64_t ends = 0;
  std::uint64_t seeks = 0;
  std::uint64_t resumes = 0;  ///< At a checkpoint, or an older step.
};

/// Built, run once and read by one thread; in between, only the baton's holder calls it.
class StoreWorld {
 public:
  explicit StoreWorld(const StoreWorldOptions& options);

  StoreRun run();

  // For actors:
  const StoreScenario& scenario() const { return scenario_; }
  const BatchSources& sources() const { return sources_; }
  StoreHistory& history() { return history_; }
  StoreJudge& judge() { return judge_; }
  ConsumerJudge consumer_judge() { return {history_, sources_, violations_}; }
  std::vector<Trainer>& trainers() { return trainers_; }
  ActorCounts& counts() { return counts_; }
  /// A producer has published its whole source.
  void mark_done(const std::string& producer) { done_.insert(producer); }
  bool is_done(const std::string& producer) const { return done_.contains(producer); }
  /// All have.
  bool produced() const { return done_.size() == scenario_.sources.size(); }
  /// The operator has ended the stream for good.
  void mark_complete() { complete_ = true; }
  bool complete() const { return complete_; }
  /// Whether the operator may do one thing more.
  bool take_operation() { return operations_ < scenario_.operations && ++operations_ > 0; }
  /// Whether a producer may change the membership once more.
  bool take_membership() { return memberships_ < scenario_.memberships && ++memberships_ > 0; }
  /// All producers and trainers are done: whoever loops should come to an end.
  bool finishing() const;
  void reclaimed() { ++reclamations_; }
  /// What the process reads may be distorted, and look like damage several times in a row.
  bool is_distorted(const Connection& connection) const;
  /// A process has come to its end, in this way.
  void ended(const Connection& connection, const Status& status);
  Result<std::unique_ptr<store::Stream>> open_stream(const Connection& connection);

 private:
  using Body = std::function<void(StoreWorld&, const Connection&)>;
  /// One process after the other, until nobody wants another one.
  struct Actor {
    std::string name;
    Body body;
    std::function<bool()> is_over;
  };

  const Connection& connect(const std::string& name);
  void make_stream();
  void start_actors();
  void start_trainers();
  /// Runs the actor's body as a process; starts another one after its end.
  void start_process(const Actor& actor);
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
  void audit_object(const std::string& key);
  StoreRun report() const;
  void report_counters(StoreRun& run) const;
  void report_counts(StoreRun& run) const;

  const StoreWorldOptions options_;
  const StoreScenario scenario_;
  const BatchSources sources_;
  const RunInspector inspector_;
  Violations violations_;
  StoreHistory history_;
  StoreJudge judge_;
  std::vector<Trainer> trainers_;
  Counters counters_;
  store::StreamOptions stream_options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  SimStore store_;

  bool healed_ = false;
  std::set<std::string> done_;
  bool complete_ = false;
  std::uint64_t operations_ = 0;
  std::uint64_t memberships_ = 0;
  ActorCounts counts_;
  std::uint64_t processes_ = 0;
  std::uint64_t reclamations_ = 0;
  std::optional<TracePoint> first_use_;
  std::vector<Trouble> troubles_;
  SimWorld world_;  // Last: its destructor ends threads that use all of the above.
};

/// What the names of reclaimers' processes begin with.
inline constexpr std::string_view kReclaimerName = "reclaimer";

// The actors. Each is the main thread of a process and returns when its work is done or its process
// should start again.
void run_producer(StoreWorld& world, const Connection& connection, const std::string& name);
void run_reclaimer(StoreWorld& world, const Connection& connection);
void run_observer(StoreWorld& world, const Connection& connection);
void run_operator(StoreWorld& world, const Connection& connection);
void run_consumer(StoreWorld& world, const Connection& connection, Trainer& trainer,
                  std::size_t rank);

}  // namespace batchloom::simulator
