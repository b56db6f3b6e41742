// SPDX-License-Identifier: Apache-2.0
// What bringing a sample of each source takes, from orders that were brought.
//
//  1. The first orders are all measured, until there are kFirstOrders of them and kFirstSamples
//     samples. What holds then is their median: the first one opened files.
//  2. From there on every kMeasureEvery-th order is, and moves a moving average by kAlpha.
//  3. Time in which a thread could have run, and others had the cores, is no cost of the source:
//     more threads would only make more of it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/thread_times.h"
#include "batchloom/control/step_loader.h"

namespace batchloom::control {

/// What an order took.
struct OrderCost {
  std::uint64_t samples = 0;  ///< At least 1.
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;  ///< Of its block.
  double thread_s = 0;      ///< On a core, and waiting for storage.
  double cpu_s = 0;         ///< Of these, on a core: no more.
};

/// Of one sample, in the mean of an order.
struct SampleCost {
  std::uint64_t samples = 0;  ///< That were measured. 0: nothing is known, and all below are 0.
  double thread_s = 0;
  double cpu_s = 0;
  double tokens = 0;
  double bytes = 0;

  friend bool operator==(const SampleCost&, const SampleCost&) = default;
};

/// Thread-safe; calls are short.
class SourceProfile {
 public:
  static constexpr std::uint64_t kFirstSamples = 64;
  static constexpr std::size_t kFirstOrders = 4;
  static constexpr std::uint64_t kMeasureEvery = 8;
  static constexpr double kAlpha = 0.05;

  explicit SourceProfile(std::size_t sources) : sources_(sources) {}

  /// Whether an order that begins now is to be measured.
  bool wants(model::SourceId source);
  void add(model::SourceId source, const OrderCost& cost);
  /// By SourceId.
  std::vector<SampleCost> costs() const;

 private:
  struct Source {
    std::vector<SampleCost> first;  ///< Of the first orders; empty once they are enough.
    SampleCost cost;
    bool is_warm = false;
    std::uint64_t orders = 0;  ///< That were asked about since it is warm.
  };

  mutable Mutex mutex_;
  std::vector<Source> sources_ BL_GUARDED_BY(mutex_);
};

/// Fetches, and profiles what it fetches. Thread-safe.
class ProfiledFetcher final : public SampleFetcher {
 public:
  /// All arguments outlive it. Without `times` all of an order's time counts as time on a core: so
  /// nobody takes more threads than there are cores for what is not known.
  ProfiledFetcher(Runtime& runtime, SampleFetcher& fetcher, SourceProfile& profile,
                  ReadThreadTimes times)
      : runtime_(runtime), fetcher_(fetcher), profile_(profile), times_(std::move(times)) {}

  /// As that of the fetcher. What fails, or has bad records, is not measured.
  Result<Fetched> fetch(const FetchOrder& order, FetchPlace& place,
                        const CallOptions& call) override;

 private:
  ThreadTimes times() const { return times_ ? times_() : ThreadTimes(); }

  Runtime& runtime_;
  SampleFetcher& fetcher_;
  SourceProfile& profile_;
  const ReadThreadTimes times_;
};

}  // namespace batchloom::control
