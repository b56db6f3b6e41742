// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/constructor_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "batchloom/base/log.h"
#include "batchloom/base/sim_runtime.h"

namespace batchloom::construction {
namespace {

using store::PendingBatch;
using store::Seq;
using testing::HasSubstr;

ConstructionJob job_of(std::uint64_t seq, std::size_t state_bytes = 8) {
  ConstructionJob job;
  job.seq = Seq(seq);
  job.state_after.resize(state_bytes);
  return job;
}

/// Does what a test says, after a while in which others have turns.
class FakeConstructor final : public Constructor {
 public:
  /// What becomes of an attempt; ok: the batch is built.
  using Attempt = std::function<Status(const ConstructionJob&, const CallOptions&)>;

  FakeConstructor(std::string name, Runtime& runtime) : name_(std::move(name)), runtime_(runtime) {}

  void attempt_by(Attempt attempt) { attempt_ = std::move(attempt); }
  std::uint64_t attempts() const { return attempts_; }

  const std::string& name() const override { return name_; }
  Result<PendingBatch> construct(const ConstructionJob& job, const CallOptions& call) override {
    EXPECT_FALSE(std::exchange(busy_, true)) << "one job at a time";
    ++attempts_;
    const Duration work(1 + runtime_.random() % 1000);
    Status done = runtime_.sleep_until({.deadline = runtime_.now() + work, .stop = call.stop});
    if (done.is_ok() && attempt_) done = attempt_(job, call);
    busy_ = false;
    if (!done.is_ok()) return done;
    PendingBatch batch;
    batch.seq = job.seq;
    batch.state_after = job.state_after;
    return batch;
  }

 private:
  const std::string name_;
  Runtime& runtime_;
  Attempt attempt_;
  std::uint64_t attempts_ = 0;
  bool busy_ = false;
};

/// Three constructors and a committer, of which a test says what they do.
class PoolWorld {
 public:
  explicit PoolWorld(SimProcess& process) : process_(process) {
    for (const char* name : {"one", "two", "three"}) {
      constructors_.push_back(std::make_unique<FakeConstructor>(name, process));
    }
  }

  Runtime& runtime() { return process_; }
  FakeConstructor& constructor(std::size_t i) { return *constructors_[i]; }
  void each_attempt_by(const FakeConstructor::Attempt& attempt) {
    for (const auto& constructor : constructors_) constructor->attempt_by(attempt);
  }
  /// What becomes of a commit; ok: its batches are published.
  void commit_by(CommitBatches commit) { commit_by_ = std::move(commit); }
  const std::vector<Seq>& committed() const { return committed_; }
  CallOptions within(Duration time) { return {.deadline = process_.now() + time}; }

  std::unique_ptr<ConstructorPool> pool(std::uint64_t bytes_max = 1 << 20) {
    std::vector<Constructor*> all;
    for (const auto& constructor : constructors_) all.push_back(constructor.get());
    const auto commit = [this](std::span<const PendingBatch> batches, const CallOptions& call) {
      return this->commit(batches, call);
    };
    return std::make_unique<ConstructorPool>(
        process_, all, commit,
        ConstructorPoolOptions{
            .first = Seq(0), .bytes_max = bytes_max, .attempt_max = attempt_max});
  }

  Duration attempt_max = std::chrono::minutes(1);

 private:
  Status commit(std::span<const PendingBatch> batches, const CallOptions& call) {
    EXPECT_FALSE(batches.empty());
    const Duration work(1 + process_.random() % 1000);
    BL_RETURN_IF_ERROR(
        process_.sleep_until({.deadline = process_.now() + work, .stop = call.stop}));
    if (commit_by_) BL_RETURN_IF_ERROR(commit_by_(batches, call));
    for (const PendingBatch& batch : batches) {
      EXPECT_EQ(batch.seq, Seq(committed_.size())) << "in order, each once";
      committed_.push_back(batch.seq);
    }
    return Status::ok();
  }

  SimProcess& process_;
  std::vector<std::unique_ptr<FakeConstructor>> constructors_;
  CommitBatches commit_by_;
  std::vector<Seq> committed_;
};

/// Runs `body` for many seeds, each an order in which threads take turns. Whoever waits for ever
/// fails the test.
void on_any_schedule(const std::function<void(PoolWorld&)>& body) {
  set_log_level(LogLevel::kOff);  // Failures are expected.
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimWorld world(seed);
    SimProcess& process = world.add_process("producer");
    process.start("main", [&] {
      PoolWorld pool_world(process);
      body(pool_world);
    });
    const Status ended = world.run();
    ASSERT_EQ(ended.to_string(), "ok");
    if (testing::Test::HasFailure()) break;
  }
  set_log_level(LogLevel::kInfo);
}

void submit_all(ConstructorPool& pool, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t seq = begin; seq < end; ++seq) {
    ASSERT_EQ(pool.submit(job_of(seq), {}).to_string(), "ok");
  }
}

TEST(ConstructorPool, CommitsAllInOrderWithinItsBound) {
  on_any_schedule([](PoolWorld& world) {
    const std::uint64_t bound = 4 * job_of(0).size_bytes();
    const auto pool = world.pool(bound);
    std::uint64_t most = 0;
    world.each_attempt_by([&](const ConstructionJob&, const CallOptions&) {
      most = std::max(most, pool->pending_bytes());
      return Status::ok();
    });
    submit_all(*pool, 0, 20);
    EXPECT_EQ(pool->flush({}).to_string(), "ok");
    EXPECT_EQ(world.committed().size(), 20U);
    EXPECT_EQ(pool->pending_bytes(), 0U);
    EXPECT_LE(most, bound);
    EXPECT_GE(most, job_of(0).size_bytes() * 2) << "several at a time";
    const PoolEnd end = pool->stop({});
    EXPECT_TRUE(end.all_committed());
    EXPECT_EQ(end.end, Seq(20));
    EXPECT_EQ(end.unknown_end, Seq(20));
    EXPECT_EQ(end.reason.to_string(), "ok");
  });
}

TEST(ConstructorPool, AJobBeyondTheBoundComesInAlone) {
  on_any_schedule([](PoolWorld& world) {
    const auto pool = world.pool(200);
    for (std::uint64_t seq = 0; seq < 4; ++seq) {
      ASSERT_TRUE(pool->submit(job_of(seq, 1000), {}).is_ok());
      EXPECT_EQ(world.committed().size(), seq) << "all before it were committed";
    }
    EXPECT_TRUE(pool->stop({}).all_committed());
  });
}

TEST(ConstructorPool, FailedAttemptsAreMadeAgainByAnybody) {
  on_any_schedule([](PoolWorld& world) {
    world.each_attempt_by([&](const ConstructionJob&, const CallOptions&) {
      switch (world.runtime().random() % 4) {
        case 0: return Status::unavailable("a store that is down");
        case 1: return Status::unknown_outcome("a lost reply");
        default: return Status::ok();
      }
    });
    world.commit_by([&](auto, const CallOptions&) {
      return world.runtime().random() % 3 == 0 ? Status::conflict("a lost race") : Status::ok();
    });
    const auto pool = world.pool();
    submit_all(*pool, 0, 12);
    EXPECT_TRUE(pool->stop({}).all_committed());
    EXPECT_EQ(world.committed().size(), 12U);
  });
}

TEST(ConstructorPool, AnotherConstructorTakesTheJobOfOneThatIsGone) {
  on_any_schedule([](PoolWorld& world) {
    world.constructor(1).attempt_by([](const ConstructionJob&, const CallOptions&) {
      return Status::cancelled("its process crashed");
    });
    const auto pool = world.pool();
    submit_all(*pool, 0, 12);
    EXPECT_TRUE(pool->flush({}).is_ok());
    EXPECT_EQ(world.constructor(1).attempts(), 3 - pool->live_constructors());
    EXPECT_TRUE(pool->stop({}).all_committed());
  });
}

TEST(ConstructorPool, WithoutConstructorsNothingGoesOn) {
  on_any_schedule([](PoolWorld& world) {
    world.each_attempt_by([](const ConstructionJob& job, const CallOptions&) {
      return job.seq < Seq(3) ? Status::ok() : Status::cancelled("its process crashed");
    });
    const auto pool = world.pool();
    submit_all(*pool, 0, 3);
    ASSERT_TRUE(pool->flush({}).is_ok());
    submit_all(*pool, 3, 4);
    const Status flushed = pool->flush({});
    EXPECT_TRUE(flushed.is(ErrorKind::kUnavailable)) << flushed.to_string();
    EXPECT_THAT(flushed.to_string(), HasSubstr("all 3 constructors are gone; the last of them: "));
    EXPECT_EQ(pool->submit(job_of(4), {}).to_string(), flushed.to_string());
    const PoolEnd end = pool->stop({});
    EXPECT_EQ(end.committed_end, Seq(3));
    EXPECT_EQ(end.unknown_end, Seq(3)) << "no commit was begun of it";
    EXPECT_EQ(end.end, Seq(4));
    EXPECT_EQ(end.reason.to_string(), flushed.to_string());
  });
}

TEST(ConstructorPool, TellsOfAJobThatCannotBeDone) {
  on_any_schedule([](PoolWorld& world) {
    world.each_attempt_by([](const ConstructionJob& job, const CallOptions&) {
      return job.seq == Seq(5) ? Status::invalid("step 5, sample 0:0:7:0: is planned, and no block")
                               : Status::ok();
    });
    const auto pool = world.pool(4 * job_of(0).size_bytes());
    Status told;
    for (std::uint64_t seq = 0; told.is_ok(); ++seq) told = pool->submit(job_of(seq), {});
    EXPECT_TRUE(told.is(ErrorKind::kInvalid));
    EXPECT_THAT(told.to_string(), HasSubstr("batch 5, without steps: step 5, sample 0:0:7:0"));
    const PoolEnd end = pool->stop({});
    EXPECT_LE(end.committed_end, Seq(5));
    EXPECT_EQ(world.committed().size(), end.committed_end.value);
    EXPECT_EQ(end.reason.to_string(), told.to_string());
  });
}

TEST(ConstructorPool, AFencedCommitEndsIt) {
  on_any_schedule([](PoolWorld& world) {
    world.commit_by([&](auto, const CallOptions&) {
      return world.committed().size() < 4 ? Status::ok() : Status::fenced("term 9");
    });
    const auto pool = world.pool();
    Status told;
    for (std::uint64_t seq = 0; told.is_ok() && seq < 30; ++seq) {
      told = pool->submit(job_of(seq), {});
    }
    if (told.is_ok()) told = pool->flush({});
    EXPECT_TRUE(told.is(ErrorKind::kFenced)) << told.to_string();
    const PoolEnd end = pool->stop({});
    EXPECT_EQ(end.committed_end.value, world.committed().size());
    EXPECT_GT(end.unknown_end, end.committed_end) << "some of them may have been published";
    EXPECT_GE(end.end, end.unknown_end);
  });
}

TEST(ConstructorPool, StopWithADeadlineSaysWhatIsNotCommitted) {
  on_any_schedule([](PoolWorld& world) {
    const auto never = world.runtime().make_event();
    world.each_attempt_by([&](const ConstructionJob& job, const CallOptions& call) {
      if (job.seq < Seq(2)) return Status::ok();
      return never->wait({.deadline = kNever, .stop = call.stop});
    });
    const auto pool = world.pool();
    submit_all(*pool, 0, 8);
    const PoolEnd end = pool->stop(world.within(std::chrono::seconds(1)));
    EXPECT_FALSE(end.all_committed());
    EXPECT_LE(end.committed_end, Seq(2));
    EXPECT_LE(end.unknown_end, Seq(2));
    EXPECT_EQ(end.end, Seq(8));
    EXPECT_TRUE(end.reason.is(ErrorKind::kUnavailable)) << end.reason.to_string();
    EXPECT_EQ(world.committed().size(), end.committed_end.value);
    const PoolEnd again = pool->stop({});
    EXPECT_EQ(again.committed_end, end.committed_end);
    EXPECT_EQ(again.reason.to_string(), end.reason.to_string());
  });
}

TEST(ConstructorPool, AnAttemptThatTakesTooLongIsMadeAgain) {
  on_any_schedule([](PoolWorld& world) {
    world.attempt_max = std::chrono::seconds(1);
    bool hung = false;
    world.each_attempt_by([&](const ConstructionJob& job, const CallOptions& call) {
      if (job.seq != Seq(1) || std::exchange(hung, true)) return Status::ok();
      BL_RETURN_IF_ERROR(
          world.runtime().sleep_until({.deadline = call.deadline, .stop = call.stop}));
      return Status::unavailable("the deadline passed");
    });
    const auto pool = world.pool();
    submit_all(*pool, 0, 4);
    EXPECT_TRUE(pool->stop({}).all_committed());
    EXPECT_TRUE(hung);
  });
}

TEST(ConstructorPool, SubmitWaitsAndMayGiveUp) {
  on_any_schedule([](PoolWorld& world) {
    const auto release = world.runtime().make_event();
    world.each_attempt_by([&](const ConstructionJob&, const CallOptions& call) {
      return release->wait({.deadline = kNever, .stop = call.stop});
    });
    const auto pool = world.pool(job_of(0).size_bytes());
    submit_all(*pool, 0, 1);
    EXPECT_TRUE(pool->submit(job_of(1), world.within(Duration(5))).is(ErrorKind::kUnavailable));
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_TRUE(pool->submit(job_of(1), {.stop = stopped.get_token()}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(pool->flush(world.within(Duration(5))).is(ErrorKind::kUnavailable));
    EXPECT_THAT(pool->submit(job_of(2), {}).to_string(), HasSubstr("the pool's next batch is 1"));
    release->set();
    EXPECT_TRUE(pool->submit(job_of(1), {}).is_ok()) << "it was not handed in before";
    EXPECT_TRUE(pool->stop({}).all_committed());
    EXPECT_TRUE(pool->submit(job_of(2), {}).is(ErrorKind::kCancelled));
    EXPECT_EQ(world.committed().size(), 2U);
  });
}

TEST(ConstructorPool, StopEndsAWaitingSubmit) {
  on_any_schedule([](PoolWorld& world) {
    const auto pool = world.pool(job_of(0).size_bytes());
    std::uint64_t handed_in = 0;
    const auto submitter = world.runtime().spawn("submitter", [&](const std::stop_token&) {
      Status told;
      while (told.is_ok()) {
        told = pool->submit(job_of(handed_in), {});
        if (told.is_ok()) ++handed_in;
      }
      EXPECT_TRUE(told.is(ErrorKind::kCancelled)) << told.to_string();
    });
    EXPECT_TRUE(world.runtime().sleep_until(world.within(Duration(2000))).is_ok());
    const PoolEnd end = pool->stop({});
    submitter->join();
    EXPECT_TRUE(end.all_committed());
    EXPECT_EQ(end.end, Seq(handed_in));
  });
}

TEST(ConstructorPool, DestroyedAmidWorkItJustEnds) {
  on_any_schedule([](PoolWorld& world) {
    {
      const auto pool = world.pool();
      submit_all(*pool, 0, 6);
    }
    EXPECT_LE(world.committed().size(), 6U);
  });
}

}  // namespace
}  // namespace batchloom::construction
