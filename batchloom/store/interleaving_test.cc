// SPDX-License-Identifier: Apache-2.0
// Processes on one bucket whose requests interleave as a seed says. No faults: those are for the
// simulator (batchloom/simulator), which also judges every event.
#include <gtest/gtest.h>

#include <set>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/stream_events.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

const StreamOptions kOptions{.limits = tiny_limits(), .safeguards = {}};

/// A bucket with small pages and the processes that use it.
class SharedBucket {
 public:
  explicit SharedBucket(std::uint64_t seed) : world_(std::make_unique<SimWorld>(seed)) {}
  /// Threads that are left over end before what they use does.
  ~SharedBucket() { world_.reset(); }
  SharedBucket(const SharedBucket&) = delete;
  SharedBucket& operator=(const SharedBucket&) = delete;

  /// Runs `body` in a process of its own, which gives the baton away before each request.
  void start(const std::string& name, std::function<void(const StreamDeps&)> body) {
    SimProcess& process = world_->add_process(name);
    ScriptedStore& view = *views_.emplace_back(std::make_unique<ScriptedStore>(objects_));
    view.before_each([&process](std::size_t) {
      static_cast<void>(process.sleep_until({.deadline = process.now() + Duration(1)}));
    });
    process.start("main", [this, &process, &view, run = std::move(body)] {
      run({process, view, counters_});
    });
  }
  /// As start(), on the stream that is there.
  void start_on_stream(const std::string& name, std::function<void(const Stream&)> body) {
    start(name, [run = std::move(body)](const StreamDeps& deps) {
      run(*Stream::open(deps, kOptions, {}).value());
    });
  }
  void run() { ASSERT_TRUE(world_->run().is_ok()); }

  /// What a process sees that nobody disturbs.
  StreamDeps judge() { return {judge_, objects_, counters_}; }
  void expect_whole(std::size_t entries) {
    const auto stream = Stream::open(judge(), kOptions, {}).value();
    const auto content = read_whole_stream(*stream);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    EXPECT_EQ(content->entries.size(), entries);
  }

 private:
  std::unique_ptr<SimWorld> world_;
  SimProcess& judge_ = world_->add_process("judge");
  objstore::MemoryStore objects_{judge_, {.page_size = 3}};
  Counters counters_;
  std::vector<std::unique_ptr<ScriptedStore>> views_;
};

TEST(Interleaving, AllInitsAgreeOnOneStream) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SharedBucket bucket(seed);
    std::set<std::string> uuids;
    for (const std::string name : {"a", "b", "c", "d"}) {
      bucket.start(name, [&uuids, name](const StreamDeps& deps) {
        const auto made = init_stream(deps, "test", {});
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        uuids.insert(made->uuid.to_string());
        open_session(*Stream::open(deps, kOptions, {}).value(), name);
      });
    }
    bucket.run();
    EXPECT_EQ(uuids.size(), 1u);
    bucket.expect_whole(0);
  }
}

TEST(Interleaving, ProducersKeepStepsDense) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SharedBucket bucket(seed);
    ASSERT_TRUE(init_stream(bucket.judge(), "test", {}).is_ok());
    for (const std::string name : {"p", "q", "r"}) {
      bucket.start_on_stream(name, [name](const Stream& stream) {
        const auto session = open_session(stream, name);
        for (Seq seq(0); seq < Seq(6); seq = seq + 2) commit_batches(*session, seq, 2);
      });
    }
    bucket.run();
    bucket.expect_whole(18);
  }
}

/// Commits six batches one by one, whoever ends the stream meanwhile.
void produce_beyond_the_end(const Stream& stream, const std::string& name) {
  const auto session = open_session(stream, name);
  for (Seq seq(0); seq < Seq(6); ++seq) {
    const std::array batch = {upload_batch(*session, seq)};
    auto receipt = session->commit(batch, {});
    while (receipt.is(ErrorKind::kInvalid)) {
      ASSERT_TRUE(reopen_stream(stream, {}).is_ok());
      receipt = session->commit(batch, {});
    }
    ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
  }
}

TEST(Interleaving, EventsAmongCommitsAreSoundAndHappenOnce) {
  const auto topology = model::Topology::parse("dp=2 tp=4").value();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SharedBucket bucket(seed);
    ASSERT_TRUE(init_stream(bucket.judge(), "test", {}).is_ok());
    int events = 0;
    for (const std::string name : {"p", "q"}) {
      bucket.start_on_stream(
          name, [name](const Stream& stream) { produce_beyond_the_end(stream, name); });
    }
    for (const std::string name : {"r", "s"}) {
      bucket.start_on_stream(name, [&](const Stream& stream) {
        for (Step step(0); step < Step(3); ++step) {
          ASSERT_TRUE(end_stream(stream, {}).is_ok());
          const auto skipped = skip_step(stream, step, {});
          events += skipped.is_ok() && skipped->committed ? 1 : 0;
          events += set_topology(stream, topology, {}).value().committed ? 1 : 0;
        }
      });
    }
    bucket.run();
    bucket.expect_whole(12);
    const auto stream = Stream::open(bucket.judge(), kOptions, {}).value();
    EXPECT_TRUE(verify_stream(*stream, VerifyDepth::kManifest, {}).value().problems.empty());
    const HeadPtr head = newest(*stream);
    EXPECT_EQ(head->head.topologies.size(), 1u);
    EXPECT_EQ(static_cast<std::size_t>(events), 1 + head->head.skipped.size());
  }
}

/// Four sessions one after another, of two batches each. Each sets the membership from step 100 on,
/// in place of what others have set, by keys that stand beside.
void produce_with_large_states(const Stream& stream, const std::string& name) {
  for (Seq seq(0); seq < Seq(8); seq = seq + 2) {
    const auto session = open_session(stream, name);
    EXPECT_EQ(session->next_seq(), seq);
    const Membership membership{.from_step = Step(100),
                                .digest = {.high = session->term().value, .low = 0},
                                .keys = Bytes(50)};
    EXPECT_TRUE(session->set_membership(membership, {}).is_ok());
    for (const Seq one : {seq, seq + 1}) {
      const std::array batch = {upload_batch(*session, one, "a large state")};
      EXPECT_TRUE(session->commit(batch, {}).is_ok());
    }
  }
}

TEST(Interleaving, TwoReclaimersAmongProducersRemoveNothingNeeded) {
  std::uint64_t removed = 0;
  std::uint64_t keys_removed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SharedBucket bucket(seed);
    ASSERT_TRUE(init_stream(bucket.judge(), "test", {}).is_ok());
    for (const std::string name : {"p", "q"}) {
      bucket.start_on_stream(
          name, [name](const Stream& stream) { produce_with_large_states(stream, name); });
    }
    for (const std::string name : {"r", "s"}) {
      bucket.start_on_stream(name, [&](const Stream& stream) {
        Reclaimer reclaimer(stream);
        for (int i = 0; i < 4; ++i) {
          const auto report = reclaimer.run({});
          ASSERT_TRUE(report.is_ok()) << report.status().to_string();
          removed += report->removed();
          keys_removed += report->memberships_removed;
        }
      });
    }
    bucket.run();
    bucket.expect_whole(16);
  }
  EXPECT_GT(removed, 500u) << "the reclaimers should meet work";
  EXPECT_GT(keys_removed, 50u) << "of every kind";
}

}  // namespace
}  // namespace batchloom::store
