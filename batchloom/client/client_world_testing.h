// SPDX-License-Identifier: Apache-2.0
// What the tests of the client share: a stream in memory on any runtime, one producer, one feed,
// and what happens to a stream while it is read.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string_view>

#include "batchloom/base/log.h"
#include "batchloom/base/metrics.h"
#include "batchloom/client/client_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/metered_store.h"
#include "batchloom/store/scripted_store_testing.h"

namespace batchloom::client {

/// How consumers see the bucket; everybody else sees it directly.
enum class View : std::uint8_t {
  kScripted,  ///< As the test scripts it, metered below. One thread at a time, as under SimWorld.
  kMetered,   ///< As it is.
};

/// A stream, one producer of it, and the feed of one process of consumers.
class ClientWorld {
 public:
  explicit ClientWorld(Runtime& runtime, View view = View::kScripted);

  Runtime& runtime() { return runtime_; }
  const store::Stream& stream() const { return *stream_; }
  const store::Stream& other() const { return *other_; }
  objstore::MemoryStore& memory() { return memory_; }
  store::ScriptedStore& objects() { return objects_; }
  HeadFeed& feed() { return *feed_; }
  TestProducer& producer() { return *producer_; }
  const TestStep& step(std::uint64_t number) const { return producer_->steps().at(number); }

  std::uint64_t counted(std::string_view name) { return counters_.counter(name).value(); }
  /// GETs of batch objects.
  std::size_t data_gets() const { return objects_.count(objstore::Operation::kGet, "d/"); }
  CallOptions within(Duration time) { return {.deadline = runtime_.now() + time}; }
  /// Lets so much time pass, in which others have many turns.
  void pass(Duration time);
  /// Spawns a thread and waits until its first turn, which goes on until it blocks.
  std::unique_ptr<Task> start(std::string name, std::function<void(std::stop_token)> body);

  /// The newest head, read by somebody else.
  store::HeadPtr newest() const;
  store::Entry entry_of(Step step) const;
  /// Flips a bit in the rank's run of the step, as it is stored.
  void damage(Step step, model::HdpRank rank);
  /// Trims the stream to `first_step`, and deletes the objects that are wholly below it.
  void trim(Step first_step);
  void remove_object(Step step);

 private:
  Runtime& runtime_;
  objstore::MemoryStore memory_;
  Counters counters_;
  Counters other_counters_;
  objstore::MeteredStore metered_;
  store::ScriptedStore objects_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<store::Stream> other_;
  std::unique_ptr<HeadFeed> feed_;
  std::unique_ptr<TestProducer> producer_;
};

/// Runs `body` on a process whose threads take turns as a seed says, for many seeds; a turn may end
/// at every request of a consumer. Whoever waits for ever fails the test.
void on_any_schedule(const std::function<void(ClientWorld&)>& body, std::uint64_t seeds = 50);

/// No log lines while it lives: failures are expected.
class QuietLog {
 public:
  QuietLog() { set_log_level(LogLevel::kOff); }
  ~QuietLog() { set_log_level(LogLevel::kInfo); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
};

/// The value, or a failed test and an abort.
template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  return std::move(result).value();
}

/// Whether `status` is an error of this kind whose message holds each of `parts`.
testing::AssertionResult is_error(const Status& status, ErrorKind kind,
                                  const std::vector<std::string>& parts);

}  // namespace batchloom::client
