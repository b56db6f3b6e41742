// SPDX-License-Identifier: Apache-2.0
// A stream whose heads are written by hand, right or wrong, under the eyes of a StoreHistory.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/simulator/store_history.h"

namespace batchloom::simulator {

/// Tails of 4 entries, arity 2.
store::Limits handmade_limits();

/// Begins with FORMAT, genesis and a floor of 0. Builders (fence(), next(), add_...) make what the
/// protocol would make; a test spoils it before commit() puts it. One thread at a time.
class HandmadeStream {
 public:
  HandmadeStream();

  void put(std::string_view key, const Bytes& bytes);
  void remove(std::string_view key);
  void put_floor(std::uint64_t slot);

  const store::Head& head() const { return history_.head(); }
  /// The next head, in which nothing is new: written by `writer` in the term of its row.
  store::Head next(const std::string& writer) const;
  /// The next head, as a fence of `producer`.
  store::Head fence(const std::string& producer) const;
  /// The next head with one batch object, of `records` records that continue the producer's source.
  store::Head batch(const std::string& producer, std::uint64_t records = 1);
  /// Uploads a batch object of `body`, and appends its entry to the tail of `next`, with the state
  /// inline.
  void add_batch(store::Head& next, const BatchBody& body);
  /// Moves the state of `producer` into an object of its own.
  void move_state_beside(store::Head& next, const std::string& producer);
  /// Moves the tail into a segment of level 0.
  void seal_tail(store::Head& next);
  /// Moves all segments of `level` into one of the level above.
  void raise_level(store::Head& next, std::size_t level);
  /// Uploads `segment`, written for `slot`.
  store::SegmentRef put_segment(store::Slot slot, const store::Segment& segment);

  /// Chains `next` to the newest head and puts it.
  void commit(const store::Head& next) { commit_on(next, history_.crc_of(history_.newest())); }
  void commit_on(store::Head next, std::optional<std::uint32_t> previous_crc);

  /// An object's name that nobody has yet.
  store::Nonce next_nonce() { return store::Nonce(++nonces_ << 56); }
  store::StreamUuid uuid() const { return uuid_; }
  const StoreHistory& history() const { return history_; }
  Violations& violations() { return violations_; }

  /// Whether no rule is broken.
  testing::AssertionResult is_right() const;
  /// Whether `rule`, and none but it, is broken, in one case for a reason that contains `reason`.
  testing::AssertionResult breaks_only(std::string_view rule, std::string_view reason) const;

 private:
  const store::Limits limits_ = handmade_limits();
  const store::StreamUuid uuid_{.bytes = {std::byte{7}}};
  Violations violations_;
  StoreHistory history_{limits_, violations_};
  objstore::MemoryObjects objects_;
  std::uint64_t nonces_ = 0;
};

}  // namespace batchloom::simulator
