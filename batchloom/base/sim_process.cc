// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/sim_runtime.h"
#include "batchloom/base/sim_thread.h"

namespace batchloom {

using internal::SimThread;

namespace {

// A crashed process may still make this many calls, each cancelled; more is a loop that ignores
// `cancelled`.
constexpr std::uint64_t kCallsAfterCrash = 10'000;

}  // namespace

class SimEvent final : public Event {
 public:
  SimEvent(SimWorld& world, SimProcess& process) : world_(world), process_(process) {}

  void set() override {
    set_ = true;
    for (SimThread* waiter : waiters_) world_.wake(*waiter, internal::kWokenByEvent);
    waiters_.clear();
  }

  void reset() override { set_ = false; }

  Status wait(const CallOptions& call) override {
    BL_RETURN_IF_ERROR(process_.check(call));
    world_.maybe_yield();
    BL_RETURN_IF_ERROR(process_.check(call));
    if (set_) return Status::ok();
    SimThread& self = *SimWorld::current_thread();
    waiters_.push_back(&self);
    {
      std::optional<std::stop_callback<std::function<void()>>> on_stop;
      if (call.stop.stop_possible()) {
        on_stop.emplace(call.stop, [this, &self] { world_.wake(self, internal::kWokenByStop); });
      }
      world_.block(self, call.deadline);
    }
    std::erase(waiters_, &self);
    if (process_.crashed()) return process_.check(call);
    switch (self.wake_reason) {
      case internal::kWokenByStop: return Status::cancelled("stopped while waiting");
      case internal::kWokenByTimer: return Status::unavailable("the deadline passed while waiting");
      default: return Status::ok();
    }
  }

 private:
  SimWorld& world_;
  SimProcess& process_;
  bool set_ = false;
  std::vector<SimThread*> waiters_;
};

class SimTask final : public Task {
 public:
  SimTask(SimWorld& world, std::stop_source stop) : world_(world), stop_(std::move(stop)) {}
  ~SimTask() override {
    request_stop();
    join();
  }

  void request_stop() override { stop_.request_stop(); }

  void join() override {
    while (!thread->finished) {
      SimThread& self = *SimWorld::current_thread();
      thread->joiners.push_back(&self);
      world_.block(self, kNever);
      std::erase(thread->joiners, &self);
    }
  }

  SimThread* thread = nullptr;

 private:
  SimWorld& world_;
  std::stop_source stop_;
};

SimProcess::SimProcess(SimWorld& world, std::string name, std::uint64_t seed)
    : world_(world), name_(std::move(name)), random_(seed) {}

SimProcess::~SimProcess() = default;

void SimProcess::start(std::string name, std::function<void()> body) {
  world_.start_thread(*this, std::move(name), std::move(body));
}

void SimProcess::crash() {
  crashed_ = true;
  for (SimThread* thread : threads_) world_.wake(*thread, internal::kWokenByCrash);
}

void SimProcess::suspend() {
  if (std::exchange(suspended_, true)) return;
  std::erase_if(world_.ready_, [this](SimThread* thread) {
    if (thread->process != this) return false;
    held_.push_back(thread);
    return true;
  });
}

void SimProcess::resume() {
  if (!std::exchange(suspended_, false)) return;
  world_.ready_.insert(world_.ready_.end(), held_.begin(), held_.end());
  held_.clear();
}

Time SimProcess::now() {
  return world_.now();
}

Status SimProcess::sleep_until(const CallOptions& call) {
  SimEvent never(world_, *this);
  const Status ended = never.wait(call);
  return ended.is(ErrorKind::kUnavailable) ? Status::ok() : ended;
}

std::unique_ptr<Task> SimProcess::spawn(std::string name,
                                        std::function<void(std::stop_token)> body) {
  std::stop_source stop;
  auto task = std::make_unique<SimTask>(world_, stop);
  task->thread = world_.start_thread(
      *this, std::move(name), [run = std::move(body), token = stop.get_token()] { run(token); });
  return task;
}

std::unique_ptr<Event> SimProcess::make_event() {
  return std::make_unique<SimEvent>(world_, *this);
}

Status SimProcess::check(const CallOptions& call) {
  if (crashed_) {
    BL_CHECK(++calls_after_crash_ < kCallsAfterCrash,
             "process " + name_ + " goes on after its crash");
    return Status::cancelled("the process has crashed");
  }
  if (call.stop.stop_requested()) return Status::cancelled("stopped");
  if (call.deadline <= world_.now()) return Status::unavailable("the deadline has passed");
  return Status::ok();
}

}  // namespace batchloom
