// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/late_calls.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

namespace batchloom::objstore {

struct LateCalls::Late {
  std::atomic<bool> ended{false};
  std::unique_ptr<Task> task;
};

LateCalls::LateCalls(Runtime& runtime) : runtime_(runtime) {}

LateCalls::~LateCalls() {
  std::vector<std::unique_ptr<Late>> rest;
  {
    const MutexLock lock(mutex_);
    rest.swap(late_);
  }
  for (const auto& late : rest) late->task->request_stop();
  for (const auto& late : rest) late->task->join();
}

bool LateCalls::reserve(std::vector<std::unique_ptr<Late>>& ended) {
  const MutexLock lock(mutex_);
  const auto first_ended = std::partition(late_.begin(), late_.end(),
                                          [](const auto& late) { return !late->ended.load(); });
  ended.assign(std::move_iterator(first_ended), std::move_iterator(late_.end()));
  late_.erase(first_ended, late_.end());
  if (late_.size() + reserved_ >= kMaxWaiting) return false;
  ++reserved_;
  return true;
}

bool LateCalls::start(Duration delay, std::function<void()> body) {
  std::vector<std::unique_ptr<Late>> ended;
  if (!reserve(ended)) return false;
  auto late = std::make_unique<Late>();
  const Time due = runtime_.now() + delay;
  late->task = runtime_.spawn("late-call", [&runtime = runtime_, due, body = std::move(body),
                                            flag = &late->ended](std::stop_token stop) {
    // A stop ends the wait, not the call: the request is in the network and its sender has no say
    // any more.
    static_cast<void>(runtime.sleep_until({.deadline = due, .stop = std::move(stop)}));
    body();
    flag->store(true);
  });
  const MutexLock lock(mutex_);
  --reserved_;
  late_.push_back(std::move(late));
  return true;
}

}  // namespace batchloom::objstore
