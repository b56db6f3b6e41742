// SPDX-License-Identifier: Apache-2.0
// What the tests of the store share: a stream in memory, ways to move it on, and a reader that
// checks all of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/metrics.h"
#include "batchloom/base/random.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/scripted_store_testing.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// A runtime of one thread: seeded randomness, and a time that passes only in sleep_until. Spawns
/// and waits for nothing.
class SeededRuntime final : public Runtime {
 public:
  explicit SeededRuntime(std::uint64_t seed = 1) : random_(seed) {}

  Time now() override { return now_; }
  Status sleep_until(const CallOptions& call) override;
  std::unique_ptr<Task> spawn(std::string name, std::function<void(std::stop_token)> body) override;
  std::unique_ptr<Event> make_event() override;
  std::uint64_t random() override { return random_.next(); }
  Status check(const CallOptions& call) override;

  /// Calls that start now may take so long.
  CallOptions within(Duration time) const { return {.deadline = now_ + time}; }

 private:
  Time now_{};
  Random random_;
};

/// Tails of 3 entries, arity 2, states and membership keys above 8 bytes beside, 4 slots kept.
Limits tiny_limits();

/// A new stream in memory. `stream_` sees it through a store that the test can script, `other_`
/// directly: what another process does in between goes through it.
class StoreTest : public testing::Test {
 protected:
  explicit StoreTest(const Limits& limits = tiny_limits(), std::uint64_t seed = 1);
  /// A script that was not played to its end makes the test say nothing.
  void TearDown() override;

  StreamDeps deps() { return {runtime_, objects_, counters_}; }
  StreamDeps other_deps() { return {runtime_, memory_, other_counters_}; }
  std::unique_ptr<Stream> open_stream(const StreamOptions& options);
  std::uint64_t counted(std::string_view name) { return counters_.counter(name).value(); }
  /// Whether the object exists; not recorded.
  bool exists(std::string_view key);
  /// All keys with the prefix, in order; not recorded.
  std::vector<std::string> keys(std::string_view prefix);

  SeededRuntime runtime_;
  objstore::MemoryStore memory_;
  ScriptedStore objects_;
  Counters counters_;
  Counters other_counters_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> other_;
};

/// The newest head.
HeadPtr newest(const Stream& stream);
/// Commits `count` heads that say nothing new.
void append_slots(const Stream& stream, std::uint64_t count);
/// The head that would follow `head`, with a fresh txid.
Head empty_successor(const Stream& stream, const Head& head);
/// Raises the floor to `floor` and removes what is at or below it.
void remove_slots(const Stream& stream, Slot floor);
/// Writes the head as a stalled writer does whose slot was deleted meanwhile: unconditionally.
void put_head(const Stream& stream, const Head& head);

std::unique_ptr<ProducerSession> open_session(const Stream& stream, const std::string& producer);
/// The text of every batch object: who wrote it.
std::string content_of(const std::string& producer, Seq seq);
/// A batch object of `steps` steps with that text.
PendingBatch upload_batch(ProducerSession& session, Seq seq, std::string_view state = {},
                          std::uint32_t steps = 1);
/// Uploads and commits `count` batches from `first` on, each with the state "<seq>".
CommitReceipt commit_batches(ProducerSession& session, Seq first, std::uint64_t count = 1);

/// A whole stream as its newest head tells it.
struct StreamContent {
  HeadPtr head;
  std::vector<Entry> entries;
};

/// Reads the manifest from the floor up and all steps. `corruption` or `internal` where a slot is
/// missing, the chain breaks, a row goes backwards, steps have a hole, a sequence number has a gap
/// or repeats within a producer, or an object or state that is named is missing.
Result<StreamContent> read_whole_stream(const Stream& stream);

}  // namespace batchloom::store
