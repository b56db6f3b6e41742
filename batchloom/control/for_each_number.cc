// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/for_each_number.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "batchloom/base/mutex.h"

namespace batchloom::control {
namespace {

/// Numbers below a count, taken one by one by several threads until one fails.
class NumberQueue {
 public:
  explicit NumberQueue(std::size_t count) : count_(count) {}

  std::optional<std::size_t> take() {
    const MutexLock lock(mutex_);
    if (!failed_.is_ok() || next_ == count_) return std::nullopt;
    return next_++;
  }
  void failed(std::size_t number, const Status& status) {
    const MutexLock lock(mutex_);
    if (failed_.is_ok() || number < failed_number_) {
      failed_number_ = number;
      failed_ = status;
    }
  }
  Status result() const {
    const MutexLock lock(mutex_);
    return failed_;
  }

 private:
  const std::size_t count_;
  mutable Mutex mutex_;
  std::size_t next_ BL_GUARDED_BY(mutex_) = 0;
  Status failed_ BL_GUARDED_BY(mutex_);
  std::size_t failed_number_ BL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

Status for_each_number(Runtime& runtime, std::uint32_t threads, std::size_t count,
                       const std::function<Status(std::size_t)>& work) {
  NumberQueue queue(count);
  const auto take_all = [&](const std::stop_token&) {
    while (const auto number = queue.take()) {
      const Status done = work(*number);
      if (!done.is_ok()) queue.failed(*number, done);
    }
  };
  const std::size_t tasks_most = std::min<std::size_t>(std::max(threads, 1U), count);
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::size_t i = 0; i < tasks_most; ++i) tasks.push_back(runtime.spawn("worker", take_all));
  for (const auto& task : tasks) task->join();
  return queue.result();
}

}  // namespace batchloom::control
