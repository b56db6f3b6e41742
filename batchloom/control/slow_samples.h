// SPDX-License-Identifier: Apache-2.0
// Samples that do not come: storage may hang in the midst of a read, and nobody can end that. What
// can be done is to say which sample it is, and to end the run in time.
//
//  1. Whoever brings an order notes which sample it is at, and at what.
//  2. Whoever waits for samples looks at that every now and then. An order that has not moved for a
//     while is logged, once for each sample; after a longer one it is an error.
//  3. Time counts while somebody looks (slow_looks.h).
//  4. Such a sample is never replaced: timing decides no membership.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/control/slow_looks.h"
#include "batchloom/model/sample_meta.h"

namespace batchloom::control {

/// Samples of one source that are brought together.
struct FetchOrder {
  model::Step step;
  model::SourceId source;
  std::vector<model::SampleMeta> samples;  ///< By id, as the step has them.
};

/// What is being done for a sample.
enum class FetchStage : std::uint8_t {
  kBegin,
  kOpen,      ///< Its shard.
  kRead,      ///< Its record.
  kReadMany,  ///< It, and neighbours of it.
  kCopy,      ///< From the index.
  kPicture,   ///< Reading and decoding its picture.
  kCheck,     ///< Whether its shard has changed.
};

/// Where an order stands. Thread-safe.
class FetchPlace {
 public:
  struct Look {
    std::uint32_t sample = 0;  ///< Its place in FetchOrder::samples.
    FetchStage stage = FetchStage::kBegin;
    friend bool operator==(const Look&, const Look&) = default;
  };

  void move_to(const Look& place) { place_.store(place, std::memory_order_relaxed); }
  Look look() const { return place_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Look> place_{Look{}};
};

/// An order that somebody brings.
struct OrderOut {
  FetchOrder order;
  FetchPlace place;
};
using OrderOutPtr = std::shared_ptr<const OrderOut>;

struct SlowSampleOptions {
  /// A sample that takes longer is logged.
  Duration slow_after = std::chrono::seconds(30);
  /// A sample that takes longer ends the run: better than a job that stands still for nobody knows
  /// what. Longer lets storage that comes back go on.
  Duration sample_max = std::chrono::minutes(10);
  std::vector<std::string> source_names = {};  ///< By SourceId, for messages.
};

/// One thread at a time.
class SlowSamples {
 public:
  explicit SlowSamples(SlowSampleOptions options)
      : options_(std::move(options)),
        looks_({.slow_after = options_.slow_after, .wait_max = options_.sample_max}) {}

  /// How often to look.
  Duration look_every() const { return looks_.look_every(); }

  /// `unavailable`, naming the step, the sample, its source and the stage, where one takes too
  /// long. Time counts from the look that first saw an order at its place.
  Status look(std::span<const OrderOutPtr> orders, Time now);

  /// "sample 0:0:7:0 of source 'docs', reading its record".  Thread-safe.
  std::string describe(const OrderOut& out) const;

 private:
  struct Standing {
    OrderOutPtr order;
    FetchPlace::Look place;
    friend bool operator==(const Standing&, const Standing&) = default;
  };

  const SlowSampleOptions options_;
  SlowLooks<Standing> looks_;
};

}  // namespace batchloom::control
