// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/base/sim_runtime.h"
#include "batchloom/base/sim_thread.h"

namespace batchloom {

using internal::SimThread;

namespace {

// With something else to do, one pick in this many lets time pass to the next timer instead.
constexpr std::uint64_t kTimerOdds = 16;

// One wait in this many lets others go first, between its caller's last look and the wait itself.
constexpr std::uint64_t kYieldOdds = 8;

}  // namespace

SimThread*& SimWorld::current_thread() {
  thread_local SimThread* current = nullptr;
  return current;
}

SimWorld::SimWorld(std::uint64_t seed)
    : random_(mix64(seed)), trace_hash_(mix64(~seed)), owner_(std::make_unique<SimThread>()) {
  owner_->name = "owner";
}

SimWorld::~SimWorld() {
  for (auto& process : processes_) {
    process->resume();
    process->crash();
  }
  const Status ended = run();
  BL_CHECK(ended.is_ok(), ended.to_string());
  for (auto& thread : threads_) thread->os_thread.join();
}

SimProcess& SimWorld::add_process(std::string name) {
  processes_.push_back(std::make_unique<SimProcess>(*this, std::move(name), random_.next()));
  return *processes_.back();
}

void SimWorld::post(std::function<void()> action) {
  actions_.push_back(std::move(action));
}

void SimWorld::post_later(std::uint64_t points, std::function<void()> action) {
  later_.push_back({points_ + points, orders_made_++, std::move(action)});
  std::push_heap(later_.begin(), later_.end());
}

bool SimWorld::release_later(bool only_due) {
  if (later_.empty() || (only_due && later_.front().at > points_)) return false;
  std::pop_heap(later_.begin(), later_.end());
  actions_.push_back(std::move(later_.back().action));
  later_.pop_back();
  return true;
}

Status SimWorld::run() {
  pass_baton(nullptr);
  std::string waiting;
  for (const auto& process : processes_) {
    for (const SimThread* thread : process->threads_) {
      waiting.append(waiting.empty() ? "" : ", ")
          .append(process->name())
          .append("/")
          .append(thread->name);
    }
  }
  if (waiting.empty()) return Status::ok();
  return Status::internal("deadlock: nothing can happen any more, and these threads wait: " +
                          waiting);
}

SimThread* SimWorld::start_thread(SimProcess& process, std::string name,
                                  std::function<void()> body) {
  auto owned = std::make_unique<SimThread>();
  SimThread* thread = owned.get();
  thread->name = std::move(name);
  thread->process = &process;
  thread->body = std::move(body);
  process.threads_.push_back(thread);
  threads_.push_back(std::move(owned));
  thread->os_thread = std::thread([this, thread] { thread_main(*thread); });
  make_ready(*thread);
  return thread;
}

void SimWorld::thread_main(SimThread& thread) {
  thread.take_baton();
  current_thread() = &thread;
  thread.body();
  thread.body = nullptr;
  finish_thread(thread);
}

void SimWorld::finish_thread(SimThread& thread) {
  thread.finished = true;
  std::erase(thread.process->threads_, &thread);
  for (SimThread* joiner : thread.joiners) wake(*joiner, internal::kWokenByEvent);
  thread.joiners.clear();
  pass_baton(nullptr);
}

void SimWorld::block(SimThread& self, Time deadline) {
  self.blocked = true;
  const std::uint64_t wait = ++self.wait;
  if (deadline != kNever) {
    timers_.push_back({deadline, orders_made_++, &self, wait});
    std::push_heap(timers_.begin(), timers_.end());
  }
  pass_baton(&self);
}

void SimWorld::maybe_yield() {
  if (random_.below(kYieldOdds) != 0) return;
  SimThread& self = *current_thread();
  make_ready(self);
  pass_baton(&self);
}

void SimWorld::wake(SimThread& thread, int reason) {
  if (!thread.blocked) return;
  thread.blocked = false;
  thread.wake_reason = reason;
  make_ready(thread);
}

void SimWorld::make_ready(SimThread& thread) {
  (thread.process->suspended_ ? thread.process->held_ : ready_).push_back(&thread);
}

void SimWorld::pass_baton(SimThread* self) {
  SimThread* const caller = self != nullptr ? self : current_thread();
  SimThread* next = pick();
  if (next == nullptr) next = owner_.get();
  if (next == self) return;
  const bool ends = caller != nullptr && caller->finished;
  const bool outside = caller == nullptr;
  if (outside && next == owner_.get()) return;
  next->give_baton();
  if (ends) return;
  (outside ? owner_.get() : self)->take_baton();
}

SimThread* SimWorld::pick() {
  for (;;) {
    while (release_later(/*only_due=*/true)) {
    }
    while (!timers_.empty() && is_stale(timers_.front())) drop_timer();
    const std::size_t choices = ready_.size() + actions_.size();
    if (choices == 0 && timers_.empty()) {
      if (release_later(/*only_due=*/false)) continue;
      return nullptr;
    }
    ++points_;
    if (!timers_.empty() && (choices == 0 || random_.below(kTimerOdds) == 0)) {
      fire_timer();
      continue;
    }
    std::size_t i = static_cast<std::size_t>(random_.below(choices));
    trace(i);
    if (i < ready_.size()) {
      SimThread* thread = ready_[i];
      ready_[i] = ready_.back();
      ready_.pop_back();
      return thread;
    }
    i -= ready_.size();
    std::function<void()> action = std::move(actions_[i]);
    if (i + 1 != actions_.size()) actions_[i] = std::move(actions_.back());
    actions_.pop_back();
    action();
  }
}

bool SimWorld::is_stale(const Timer& timer) {
  return timer.wait != timer.thread->wait || !timer.thread->blocked;
}

void SimWorld::drop_timer() {
  std::pop_heap(timers_.begin(), timers_.end());
  timers_.pop_back();
}

void SimWorld::fire_timer() {
  SimThread& thread = *timers_.front().thread;
  now_ = std::max(now_, timers_.front().at);
  drop_timer();
  wake(thread, internal::kWokenByTimer);
}

}  // namespace batchloom
