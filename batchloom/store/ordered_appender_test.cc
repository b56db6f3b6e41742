// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/ordered_appender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/base/sim_runtime.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::HasSubstr;

constexpr std::size_t kSubmitters = 4;
// Two of the batches here, each a text of 12 to 16 bytes, and never three.
constexpr std::uint64_t kRoomForTwo = 32;

// For a call that may not wait at all.
CallOptions at_once(Runtime& runtime) {
  return {.deadline = runtime.now() + Duration(1)};
}
CallOptions stopped() {
  std::stop_source source;
  source.request_stop();
  return {.stop = source.get_token()};
}

/// A session of producer "a" on a stream in memory, and what its appender has committed.
class Work {
 public:
  explicit Work(Runtime& runtime) : runtime_(runtime), memory_(runtime), objects_(memory_) {
    EXPECT_TRUE(init_stream({runtime_, memory_, counters_}, "test", {}).is_ok());
    stream_ = open_stream(objects_);
    other_ = open_stream(memory_);
    session_ = open_session(*stream_, "a");
  }

  Runtime& runtime() { return runtime_; }
  /// The session's view of the store: once there is an appender, its committer's alone.
  ScriptedStore& objects() { return objects_; }
  ProducerSession& session() { return *session_; }
  /// From now on the session is fenced.
  void fence() { open_session(*other_, "a"); }

  /// The session's first batches.
  std::vector<PendingBatch> upload(std::uint64_t count) {
    std::vector<PendingBatch> batches;
    for (Seq seq(0); seq < Seq(count); ++seq) batches.push_back(upload_batch(*session_, seq));
    return batches;
  }

  std::unique_ptr<OrderedAppender> make_appender() {
    const auto note = [this](std::span<const PendingBatch> batches, const CommitReceipt& receipt) {
      EXPECT_LE(batches.size(), 3u) << "two that waited, and the one that they had waited for";
      for (const PendingBatch& batch : batches) committed_.push_back(batch.seq);
      EXPECT_EQ(receipt.next_step, Step(committed_.size()));
    };
    return std::make_unique<OrderedAppender>(
        runtime_, *session_,
        OrderedAppenderOptions{
            .pending_bytes_max = kRoomForTwo,
            .on_commit = note,
            .on_failure = [this](const Status& error) { failures_.push_back(error); }});
  }

  /// What on_failure was told. Precondition: no appender is left.
  const std::vector<Status>& failures() const { return failures_; }

  /// The stream holds the first `count` batches, and on_commit was told of each once, in order.
  /// Precondition: no appender is left.
  void expect_committed(std::uint64_t count) {
    std::vector<Seq> expected;
    for (Seq seq(0); seq < Seq(count); ++seq) expected.push_back(seq);
    EXPECT_EQ(committed_, expected);
    const auto content = read_whole_stream(*other_);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    std::vector<Seq> stored;
    for (const Entry& entry : content->entries) stored.push_back(entry.seq);
    EXPECT_EQ(stored, expected);
  }

 private:
  std::unique_ptr<Stream> open_stream(objstore::ObjectStore& objects) {
    const StreamOptions options{.limits = tiny_limits(), .safeguards = {}};
    return Stream::open({runtime_, objects, counters_}, options, {}).value();
  }

  Runtime& runtime_;
  objstore::MemoryStore memory_;
  ScriptedStore objects_;
  Counters counters_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> other_;
  std::unique_ptr<ProducerSession> session_;
  std::vector<Seq> committed_;
  std::vector<Status> failures_;
};

/// Runs `body` on a process whose threads take turns as a seed says, for many seeds. Whoever waits
/// for ever fails the test.
void on_any_schedule(const std::function<void(Work&, std::uint64_t)>& body) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimWorld world(seed);
    SimProcess& process = world.add_process("producer");
    process.start("main", [&] {
      Work work(process);
      work.objects().before_each([&process](std::size_t) {
        static_cast<void>(process.sleep_until({.deadline = process.now() + Duration(1)}));
      });
      body(work, seed);
    });
    const Status ended = world.run();
    ASSERT_TRUE(ended.is_ok()) << ended.to_string();
  }
}

// An order in which the submitters can hand them in whatever the bound is: no more than
// kSubmitters - 1 others come before the next one, so one thread is left for it.
std::vector<PendingBatch> shuffle(std::vector<PendingBatch> batches, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t begin = 0; begin < batches.size(); begin += kSubmitters) {
    for (std::size_t i = std::min(kSubmitters, batches.size() - begin); i > 1; --i) {
      std::swap(batches[begin + i - 1], batches[begin + random.below(i)]);
    }
  }
  return batches;
}

void submit_all(Work& work, std::uint64_t count, std::uint64_t seed, const CallOptions& call) {
  const std::vector<PendingBatch> batches = shuffle(work.upload(count), seed);
  const auto appender = work.make_appender();
  std::atomic<std::size_t> taken = 0;
  std::vector<std::unique_ptr<Task>> submitters;
  for (std::size_t i = 0; i < kSubmitters; ++i) {
    submitters.push_back(work.runtime().spawn("submitter", [&](const std::stop_token&) {
      for (std::size_t next = taken++; next < batches.size(); next = taken++) {
        const Status handed_in = appender->submit(batches[next], call);
        ASSERT_TRUE(handed_in.is_ok()) << handed_in.to_string();
      }
    }));
  }
  for (const auto& submitter : submitters) submitter->join();
  const Status flushed = appender->flush(Seq(count), call);
  EXPECT_TRUE(flushed.is_ok()) << flushed.to_string();
}

class OrderedAppenderTest : public testing::Test {
 protected:
  /// Far more than anything takes: a thread that nobody wakes fails the test and does not hang.
  CallOptions soon() { return {.deadline = runtime_->now() + std::chrono::seconds(30)}; }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  Work work_{*runtime_};
};

TEST_F(OrderedAppenderTest, CommitsWhatManyThreadsHandInOnceAndInOrder) {
  submit_all(work_, 5'000, 1, soon());
  work_.expect_committed(5'000);
}

TEST(OrderedAppenderSim, CommitsWhatManyThreadsHandInOnceAndInOrder) {
  on_any_schedule([](Work& work, std::uint64_t seed) {
    submit_all(work, 22, seed, {});
    work.expect_committed(22);
  });
}

TEST_F(OrderedAppenderTest, LetsOnlyTheNextOneInWithoutRoom) {
  const auto batches = work_.upload(5);
  auto appender = work_.make_appender();
  EXPECT_TRUE(appender->submit(batches[1], at_once(*runtime_)).is_ok());
  EXPECT_TRUE(appender->submit(batches[3], at_once(*runtime_)).is_ok());
  EXPECT_TRUE(appender->submit(batches[2], at_once(*runtime_)).is(ErrorKind::kUnavailable));
  EXPECT_TRUE(appender->submit(batches[2], stopped()).is(ErrorKind::kCancelled));
  EXPECT_TRUE(appender->submit(batches[0], soon()).is_ok());
  EXPECT_TRUE(appender->submit(batches[4], soon()).is_ok());
  EXPECT_TRUE(appender->submit(batches[2], soon()).is_ok());
  EXPECT_TRUE(appender->flush(Seq(5), soon()).is_ok());
  appender.reset();
  work_.expect_committed(5);
}

TEST_F(OrderedAppenderTest, RefusesWhatWasHandedInBefore) {
  const auto batches = work_.upload(2);
  auto appender = work_.make_appender();
  const auto expect_refused = [&](const PendingBatch& batch) {
    const Status refused = appender->submit(batch, {});
    EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("was handed in before"));
  };
  ASSERT_TRUE(appender->submit(batches[1], {}).is_ok());
  expect_refused(batches[1]);
  ASSERT_TRUE(appender->submit(batches[0], {}).is_ok());
  expect_refused(batches[0]);
  ASSERT_TRUE(appender->flush(Seq(2), soon()).is_ok());
  for (const PendingBatch& batch : batches) expect_refused(batch);
  appender.reset();
  work_.expect_committed(2);
}

TEST_F(OrderedAppenderTest, FlushWaitsForTheCommit) {
  const auto batches = work_.upload(2);
  auto appender = work_.make_appender();
  EXPECT_TRUE(appender->flush(Seq(0), at_once(*runtime_)).is_ok());
  EXPECT_TRUE(appender->flush(Seq(1), at_once(*runtime_)).is(ErrorKind::kUnavailable));
  EXPECT_TRUE(appender->flush(Seq(1), stopped()).is(ErrorKind::kCancelled));
  work_.objects().next({.operation = Operation::kPut, .prefix = "m/", .before = [&] {
                          const Status amid = appender->flush(Seq(1), at_once(*runtime_));
                          EXPECT_TRUE(amid.is(ErrorKind::kUnavailable)) << amid.to_string();
                        }});
  const auto flush = runtime_->spawn("flush", [&](const std::stop_token&) {
    EXPECT_TRUE(appender->flush(Seq(2), soon()).is_ok());
    EXPECT_TRUE(work_.objects().script_is_done());
  });
  for (const PendingBatch& batch : batches) ASSERT_TRUE(appender->submit(batch, soon()).is_ok());
  flush->join();
  appender.reset();
  work_.expect_committed(2);
}

TEST(OrderedAppenderSim, WhoeverWaitsHearsAStop) {
  on_any_schedule([](Work& work, std::uint64_t) {
    const auto batches = work.upload(4);
    const auto appender = work.make_appender();
    for (const std::size_t i : {1U, 2U}) ASSERT_TRUE(appender->submit(batches[i], {}).is_ok());
    const auto submit = work.runtime().spawn("submit", [&](const std::stop_token& stop) {
      EXPECT_TRUE(appender->submit(batches[3], {.stop = stop}).is(ErrorKind::kCancelled));
    });
    const auto flush = work.runtime().spawn("flush", [&](const std::stop_token& stop) {
      EXPECT_TRUE(appender->flush(Seq(1), {.stop = stop}).is(ErrorKind::kCancelled));
    });
    EXPECT_TRUE(work.runtime().sleep_until(at_once(work.runtime())).is_ok());
    for (const auto& task : {submit.get(), flush.get()}) task->request_stop();
  });
}

TEST(OrderedAppenderSim, EverybodyHearsThatTheSessionIsFenced) {
  on_any_schedule([](Work& work, std::uint64_t) {
    const auto batches = work.upload(4);
    auto appender = work.make_appender();
    for (const std::size_t i : {1U, 2U}) ASSERT_TRUE(appender->submit(batches[i], {}).is_ok());
    const auto submit = work.runtime().spawn("submit", [&](const std::stop_token&) {
      EXPECT_TRUE(appender->submit(batches[3], {}).is(ErrorKind::kFenced));
    });
    const auto flush = work.runtime().spawn("flush", [&](const std::stop_token&) {
      EXPECT_TRUE(appender->flush(Seq(1), {}).is(ErrorKind::kFenced));
    });
    work.fence();
    EXPECT_TRUE(appender->submit(batches[0], {}).is_ok());
    submit->join();
    flush->join();
    EXPECT_TRUE(appender->submit(batches[3], {}).is(ErrorKind::kFenced));
    appender.reset();
    work.expect_committed(0);
    ASSERT_EQ(work.failures().size(), 1u);
    EXPECT_TRUE(work.failures().front().is(ErrorKind::kFenced));
  });
}

TEST_F(OrderedAppenderTest, StopsForGoodWhereACommitCannotSucceed) {
  const auto batches = work_.upload(2);
  work_.objects().next(
      {.operation = Operation::kPut, .prefix = "m/", .answer = Answer::kForbidden});
  auto appender = work_.make_appender();
  ASSERT_TRUE(appender->submit(batches[0], {}).is_ok());
  EXPECT_TRUE(appender->flush(Seq(1), soon()).is(ErrorKind::kInvalid));
  EXPECT_TRUE(appender->submit(batches[1], {}).is(ErrorKind::kInvalid));
  appender.reset();
  work_.expect_committed(0);
}

TEST(OrderedAppenderSim, RepeatsACommitThatMayHaveHappened) {
  on_any_schedule([](Work& work, std::uint64_t) {
    const auto batches = work.upload(3);
    // The slot is written; the floor does not tell whether it counts. Then the repeated commit does
    // not get to see who took the slot.
    work.objects().next(
        {.operation = Operation::kGet, .prefix = "gc/floor", .answer = Answer::kForbidden});
    work.objects().next(
        {.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kUnavailable});
    auto appender = work.make_appender();
    for (const PendingBatch& batch : batches) ASSERT_TRUE(appender->submit(batch, {}).is_ok());
    EXPECT_TRUE(appender->flush(Seq(3), {}).is_ok());
    EXPECT_TRUE(work.objects().script_is_done());
    appender.reset();
    work.expect_committed(3);
  });
}

TEST_F(OrderedAppenderTest, EndsWithBatchesThatWait) {
  const auto batches = work_.upload(3);
  auto appender = work_.make_appender();
  for (const std::size_t i : {1U, 2U}) ASSERT_TRUE(appender->submit(batches[i], {}).is_ok());
  appender.reset();
  work_.expect_committed(0);
  EXPECT_EQ(work_.session().commit(batches, {}).value().committed, 3u);
}

TEST_F(OrderedAppenderTest, EndsAmidACommitThatIsRepeated) {
  const auto batches = work_.upload(1);
  const auto repeated = runtime_->make_event();
  work_.objects().next({.operation = Operation::kPut,
                        .prefix = "m/",
                        .answer = Answer::kUnavailable,
                        .times = SIZE_MAX,
                        .before = [&] { repeated->set(); }});
  auto appender = work_.make_appender();
  ASSERT_TRUE(appender->submit(batches[0], {}).is_ok());
  ASSERT_TRUE(repeated->wait(soon()).is_ok());
  appender.reset();
  work_.expect_committed(0);
  work_.objects().forget_script();
  EXPECT_EQ(work_.session().commit(batches, {}).value().committed, 1u);
}

}  // namespace
}  // namespace batchloom::store
