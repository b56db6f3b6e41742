// SPDX-License-Identifier: Apache-2.0
// A Runtime for tests: real threads of which exactly one holds the baton, virtual time, one seed.
//
//  1. Every blocking call gives the baton back. The world then picks what happens next among all
//     that could: a thread that may go on, a posted action, or the passing of time. The pick is a
//     function of the seed and of the picks before, so one seed is one history, whatever the
//     machine does.
//  2. Actions are the world's own events (a request reaching a store, a reply coming back). They
//     run between threads and must not block.
//  3. A process is a Runtime. When it crashes, every blocking call of its threads, begun or new,
//     ends with `cancelled` and without effect; actions that it posted before still happen. When
//     it is suspended, its threads are never picked until it resumes, while the rest of the world
//     goes on.
//  4. Time stands still while threads run, and jumps to the next timer when nothing else can
//     happen, or by chance earlier: no order may depend on a clock.
//
// Code under test must not block in any other way, and must not hold a Mutex across a call into
// the Runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/base/runtime.h"

namespace batchloom {

class SimWorld;

namespace internal {
struct SimThread;
}

/// A simulated process: the Runtime that its code is given. Owned by its world. Only the baton's
/// holder may call it.
class SimProcess final : public Runtime {
 public:
  SimProcess(SimWorld& world, std::string name, std::uint64_t seed);
  ~SimProcess() override;

  const std::string& name() const { return name_; }

  /// Starts a thread that belongs to the world: it is joined by SimWorld::run, not by a Task.
  void start(std::string name, std::function<void()> body);

  /// From now on all blocking calls of this process are `cancelled`. For ever.
  void crash();
  bool crashed() const { return crashed_; }
  /// As SIGSTOP: no thread of this process is picked until resume().
  void suspend();
  void resume();
  bool suspended() const { return suspended_; }
  /// Threads whose function has not returned.
  std::size_t live_threads() const { return threads_.size(); }

  Time now() override;
  Status sleep_until(const CallOptions& call) override;
  std::unique_ptr<Task> spawn(std::string name, std::function<void(std::stop_token)> body) override;
  std::unique_ptr<Event> make_event() override;
  std::uint64_t random() override { return random_.next(); }
  Status check(const CallOptions& call) override;

 private:
  friend class SimWorld;
  friend struct internal::SimThread;

  SimWorld& world_;
  std::string name_;
  Random random_;
  bool crashed_ = false;
  bool suspended_ = false;
  std::uint64_t calls_after_crash_ = 0;
  std::vector<internal::SimThread*> threads_;  // Alive.
  std::vector<internal::SimThread*> held_;     // Ready, but the process is suspended.
};

/// The scheduler. Built, filled and run by one thread from outside; everything else happens inside
/// run().
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);
  /// Crashes what is still alive and waits for its threads.
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  SimProcess& add_process(std::string name);

  /// `action` will happen at some later pick.
  void post(std::function<void()> action);
  /// As post(), but at least so many picks from now, unless nothing else can happen earlier.
  void post_later(std::uint64_t points, std::function<void()> action);

  /// Picks until nothing can happen any more. Ok if every thread has ended; else `internal`, naming
  /// the threads that wait for what never comes.
  Status run();

  Time now() const { return now_; }
  /// Picks so far.
  std::uint64_t points() const { return points_; }
  /// The scheduler's own randomness; for others that decide part of the history.
  Random& random() { return random_; }

  /// Mixes an observation into the trace hash.
  void trace(std::uint64_t observation) { trace_hash_ = mix64(trace_hash_ ^ observation); }
  /// Of all picks and observations so far: equal for equal histories.
  std::uint64_t trace_hash() const { return trace_hash_; }

 private:
  friend class SimProcess;
  friend class SimEvent;
  friend class SimTask;
  friend struct internal::SimThread;

  struct Timer {
    Time at;
    std::uint64_t order;  // Of creation, so that equal times have one order.
    internal::SimThread* thread;
    std::uint64_t wait;  // The thread's wait that it belongs to; another one makes the timer void.
    friend bool operator<(const Timer& a, const Timer& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;  // A heap's top is the earliest.
    }
  };

  // The thread of this world that the calling thread is; null outside.
  static internal::SimThread*& current_thread();

  struct Later {
    std::uint64_t at;  // In picks.
    std::uint64_t order;
    std::function<void()> action;
    friend bool operator<(const Later& a, const Later& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  internal::SimThread* start_thread(SimProcess& process, std::string name,
                                    std::function<void()> body);
  void thread_main(internal::SimThread& thread);
  void finish_thread(internal::SimThread& thread);

  // Waits until woken: the reason is in thread.wake_reason.
  void block(internal::SimThread& self, Time deadline);
  void wake(internal::SimThread& thread, int reason);
  void maybe_yield();
  void make_ready(internal::SimThread& thread);
  // Hands the baton to the next picked thread, or to run() when nothing can happen.
  void pass_baton(internal::SimThread* self);
  internal::SimThread* pick();
  bool release_later(bool only_due);
  static bool is_stale(const Timer& timer);
  void drop_timer();
  void fire_timer();

  Random random_;
  Time now_{};
  std::uint64_t points_ = 0;
  std::uint64_t trace_hash_ = 0;
  std::uint64_t orders_made_ = 0;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  std::vector<std::unique_ptr<internal::SimThread>> threads_;
  std::vector<internal::SimThread*> ready_;
  std::vector<std::function<void()>> actions_;
  std::vector<Later> later_;                    // A heap.
  std::vector<Timer> timers_;                   // A heap.
  std::unique_ptr<internal::SimThread> owner_;  // Stands for the caller of run().
};

}  // namespace batchloom
