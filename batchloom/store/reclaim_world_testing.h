// SPDX-License-Identifier: Apache-2.0
// A stream with everything that a reclaimer can meet, made of a seed, and what of it must stay.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "batchloom/base/random.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {

/// A world of one thread. The same seed makes the same one.
class ReclaimWorld {
 public:
  explicit ReclaimWorld(std::uint64_t seed, const Safeguards& safeguards = {});

  /// So many random acts: sessions, packs, uploads that are not committed, membership
  /// events, lost segments, states and membership keys, pins, cursors and trims.
  void act(std::uint64_t times);

  /// What a test reclaims through; its requests can be scripted.
  const Stream& stream() const { return *stream_; }
  ScriptedStore& objects() { return objects_; }
  /// The same, undisturbed.
  const Stream& other() const { return *other_; }

  /// All objects and their bytes.
  std::map<std::string, Bytes> content();
  /// The keys of all objects with the prefix.
  std::set<std::string> keys(std::string_view prefix);
  /// Those below s/ and d/ that a pass must leave, by the newest head.
  std::set<std::string> needed();

 private:
  ProducerSession& session(const std::string& producer);
  void commit(const std::string& producer);
  void set_membership(const std::string& producer);
  void leave_garbage();
  void pin_or_unpin();
  void move_cursor();
  Step draw_step();
  std::string draw_producer();

  SeededRuntime runtime_;
  Random random_;
  objstore::MemoryStore memory_{runtime_, {.page_size = 3}};
  ScriptedStore objects_{memory_};
  Counters counters_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> other_;
  std::map<std::string, std::unique_ptr<ProducerSession>> sessions_;
  std::map<std::string, Seq> next_;  // Of each session.
};

}  // namespace batchloom::store
