// SPDX-License-Identifier: Apache-2.0
// Named counters. A component is given a Counters and takes its own out of it by name, once, at
// construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "batchloom/base/mutex.h"

namespace batchloom {

/// A count that only grows. Thread-safe, wait-free.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A set of counters by name, in the manner of "store_commit_lost_races". Thread-safe.
class Counters {
 public:
  /// The counter called `name`, made on first use; valid as long as this object.
  Counter& counter(std::string_view name);
  /// All counters and their values now, by name.
  std::map<std::string, std::uint64_t> snapshot() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom
