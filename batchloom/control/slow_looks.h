// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "batchloom/base/runtime.h"

namespace batchloom::control {

/// For messages.
inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// When something that does not move is said to be slow, and when it is given up.
struct SlowLimits {
  Duration slow_after = std::chrono::seconds(30);
  Duration wait_max = std::chrono::minutes(10);
};

/// How long things have not moved, by looks at where they stand every now and then. Time counts
/// while somebody looks: of a longer pause between two looks, in which the process may have been
/// stopped, or its machine suspended, only the usual one counts. One thread at a time.
template <class Item>
class SlowLooks {
 public:
  struct Seen {
    Item item;
    Duration waited = {};  ///< Since the look that first saw it where it is.
    bool said = false;
  };

  explicit SlowLooks(const SlowLimits& limits) : limits_(limits) {}

  /// How often to look.
  Duration look_every() const { return std::min(limits_.slow_after, limits_.wait_max) / 4; }

  /// `items`: where all things stand now. Calls slow(const Seen&), once for each that becomes slow
  /// where it is. The first that is to be given up, or null; valid until the next look.
  template <class F>
  const Seen* look(std::vector<Item> items, Time now, F slow) {
    // Twice: on a busy machine a look comes late.
    const Duration passed = std::min<Duration>(now - looked_, 2 * look_every());
    looked_ = now;
    std::vector<Seen> still;
    for (Item& item : items) {
      const auto before = std::ranges::find(seen_, item, &Seen::item);
      const bool is_new = before == seen_.end();
      still.push_back({.item = std::move(item)});
      if (is_new) continue;
      still.back().waited = before->waited + passed;
      still.back().said = before->said;
    }
    seen_ = std::move(still);
    for (Seen& seen : seen_) {
      if (seen.waited >= limits_.wait_max) return &seen;
      if (seen.waited >= limits_.slow_after && !std::exchange(seen.said, true)) slow(seen);
    }
    return nullptr;
  }

 private:
  const SlowLimits limits_;
  std::vector<Seen> seen_;
  Time looked_ = {};
};

}  // namespace batchloom::control
