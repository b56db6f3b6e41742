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

/// A batch object that says what it holds, and nothing else.
Bytes encode_body(const BatchBody& body);

/// Reads those.
class HandmadeBodies final : public BatchInspector {
 public:
  Result<BatchBody> inspect(const store::StreamUuid& stream, const store::Entry& entry,
                            const SharedBytes& object) const override;
};

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
  /// The next head, in which nothing is new: written by nobody, for an event or a trim.
  store::Head edit() const;
  /// The next head, by which a trim to `step` is announced.
  store::Head intent(std::uint64_t step) const;
  /// The next head, in which the announced trim has come to `step`.
  store::Head trim(std::uint64_t step) const;
  /// The next head, in which `producer` has set the membership from `step` on, by keys with the
  /// digest `keys` in an object of their own.
  store::Head membership(const std::string& producer, std::uint64_t step, std::uint64_t keys);
  /// The next head with one batch object, of `records` records that continue the producer's source.
  store::Head batch(const std::string& producer, std::uint64_t records = 1);
  /// Uploads a batch object of `body`, and appends its entry to the tail of `next`, with the state
  /// inline.
  void add_batch(store::Head& next, const BatchBody& body);
  /// Moves the state of `producer` into an object of its own.
  void move_state_beside(store::Head& next, const std::string& producer);
  /// Moves the tail into a segment of level 0.
  void seal_tail(store::Head& next);
  /// Commits one more batch of the producer in a head whose tail was sealed.
  void seal(const std::string& producer);
  /// Moves all segments of `level` into one of the level above.
  void raise_level(store::Head& next, std::size_t level);
  /// Uploads `segment`, written for `slot`.
  store::SegmentRef put_segment(store::Slot slot, const store::Segment& segment);

  /// Chains `next` to the newest head and puts it.
  void commit(const store::Head& next) { commit_on(next, crc_of(history_.newest())); }
  void commit_on(store::Head next, std::uint32_t previous_crc);
  /// 0 for a slot that was never committed.
  std::uint32_t crc_of(store::Slot slot) const;

  /// Puts a pin of group "g" under a name of its own.
  store::Pin pin(std::uint64_t step);
  /// Puts the cursor of group "g": open, unless `closed`; `counter` steps after keep_from, where a
  /// process may well have opened it, and has come so far.
  void put_cursor(std::uint64_t keep_from, std::uint64_t counter, bool closed = false);
  /// The same of any cursor, whatever a process may have done.
  void put_cursor(const store::LiveCursor& cursor);

  /// An object's name that nobody has yet.
  store::Nonce next_nonce() { return store::Nonce(++nonces_ << 56); }
  store::StreamUuid uuid() const { return uuid_; }
  StoreHistory& history() { return history_; }
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
  const HandmadeBodies bodies_;
  StoreHistory history_{limits_, bodies_, violations_};
  objstore::MemoryObjects objects_;
  std::uint64_t nonces_ = 0;
};

}  // namespace batchloom::simulator
