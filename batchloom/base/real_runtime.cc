// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/real_runtime.h"

#include <pthread.h>
#include <sys/random.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom {
namespace {

using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

Time steady_now() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

Status stopped() {
  return Status::cancelled("a stop was requested");
}
Status too_late() {
  return Status::unavailable("the deadline passed");
}

Status may_start(const CallOptions& call) {
  if (call.stop.stop_requested()) return stopped();
  if (call.deadline != kNever && call.deadline <= steady_now()) return too_late();
  return Status::ok();
}

/// A one-bit condition. A plain std::mutex, because std::condition_variable_any needs one that
/// clang's analysis does not follow into the wait. Thread-safe.
class RealEvent final : public Event {
 public:
  void set() override {
    {
      const std::lock_guard lock(mutex_);
      set_ = true;
    }
    changed_.notify_all();
  }

  void reset() override {
    const std::lock_guard lock(mutex_);
    set_ = false;
  }

  Status wait(const CallOptions& call) override {
    BL_RETURN_IF_ERROR(may_start(call));
    std::unique_lock lock(mutex_);
    const auto is_set = [this] { return set_; };
    // kNever would overflow inside the standard library's conversions between clocks.
    const bool was_set =
        call.deadline == kNever
            ? changed_.wait(lock, call.stop, is_set)
            : changed_.wait_until(lock, call.stop, SteadyTime(call.deadline.time_since_epoch()),
                                  is_set);
    if (was_set) return Status::ok();
    return call.stop.stop_requested() ? stopped() : too_late();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool set_ = false;
};

/// Owned by its spawner. std::jthread's destructor requests the stop and joins.
class RealTask final : public Task {
 public:
  RealTask(const std::string& name, std::function<void(std::stop_token)> body)
      : thread_(std::move(body)) {
    // Linux allows 15 characters; the name is a help for debuggers, so a failure does not matter.
    static_cast<void>(pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str()));
  }

  void request_stop() override { thread_.request_stop(); }

  void join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::jthread thread_;
};

class RealRuntime final : public Runtime {
 public:
  Time now() override { return steady_now(); }

  Status sleep_until(const CallOptions& call) override {
    RealEvent never_set;
    const Status ended = never_set.wait(call);
    return ended.is(ErrorKind::kCancelled) ? ended : Status::ok();
  }

  std::unique_ptr<Task> spawn(std::string name,
                              std::function<void(std::stop_token)> body) override {
    return std::make_unique<RealTask>(name, std::move(body));
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<RealEvent>(); }

  std::uint64_t random() override {
    std::uint64_t bits = 0;
    // Eight bytes are never cut short or interrupted once the kernel's pool is ready
    // (getrandom(2)).
    BL_CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits), "the kernel gave no randomness");
    return bits;
  }

  Status check(const CallOptions& call) override { return may_start(call); }
};

}  // namespace

std::unique_ptr<Runtime> make_real_runtime() {
  return std::make_unique<RealRuntime>();
}

}  // namespace batchloom
