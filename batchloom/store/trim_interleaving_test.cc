// SPDX-License-Identifier: Apache-2.0
// Pins, live cursors, producers and reclaimers on one bucket, whose requests interleave as a seed
// says. No faults: those are for the simulator (batchloom/simulator).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/trimmer.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

/// What happened in a world.
struct Tally {
  std::uint64_t trimmed = 0;
  std::uint64_t removed = 0;
  std::uint64_t pinned = 0;
  std::uint64_t refused = 0;
  std::uint64_t withdrawn = 0;
  std::uint64_t broken_promises = 0;

  void add(const Tally& other) {
    trimmed += other.trimmed;
    removed += other.removed;
    pinned += other.pinned;
    refused += other.refused;
    withdrawn += other.withdrawn;
    broken_promises += other.broken_promises;
  }
};

class PinnedWorld {
 public:
  PinnedWorld(std::uint64_t seed, std::optional<Safeguard> broken)
      : options_{.limits = tiny_limits(), .safeguards = {.broken = broken, .on_use = {}}},
        world_(std::make_unique<SimWorld>(seed)) {}
  /// Threads that are left over end before what they use does.
  ~PinnedWorld() { world_.reset(); }
  PinnedWorld(const PinnedWorld&) = delete;
  PinnedWorld& operator=(const PinnedWorld&) = delete;

  Tally run() {
    SimProcess& judge = world_->add_process("judge");
    objects_ = std::make_unique<objstore::MemoryStore>(judge, objstore::MemoryStoreOptions{3});
    EXPECT_TRUE(init_stream({judge, *objects_, counters_}, "test", {}).is_ok());
    start("producer", [this](SimProcess&, const Stream& stream) { produce(stream); });
    start("reclaimer", [this](SimProcess&, const Stream& stream) { reclaim(stream); });
    for (const std::string name : {"a", "b"}) {
      start("trimmer " + name, [this](SimProcess&, const Stream& stream) { trim_often(stream); });
    }
    for (const std::string name : {"early", "late"}) {
      start("pinner " + name, [this, name](SimProcess& process, const Stream& stream) {
        pin_some(process, stream, name);
      });
    }
    start("reader",
          [this](SimProcess& process, const Stream& stream) { move_cursor(process, stream); });
    EXPECT_TRUE(world_->run().is_ok());
    tally_.withdrawn = counters_.counter("store_intents_withdrawn").value();
    if (!options_.safeguards.broken) expect_sound(judge);
    return tally_;
  }

 private:
  // Runs `body` in a process of its own, which gives the baton away before each request.
  void start(const std::string& name, std::function<void(SimProcess&, const Stream&)> body) {
    SimProcess& process = world_->add_process(name);
    ScriptedStore& view = *views_.emplace_back(std::make_unique<ScriptedStore>(*objects_));
    view.before_each([&process](std::size_t) {
      static_cast<void>(process.sleep_until({.deadline = process.now() + Duration(1)}));
    });
    process.start("main", [this, &process, &view, run = std::move(body)] {
      run(process, *Stream::open({process, view, counters_}, options_, {}).value());
    });
  }

  void produce(const Stream& stream) {
    for (Seq seq(0); seq < Seq(40);) {
      const auto session = open_session(stream, "p");
      for (int i = 0; i < 8; ++i, ++seq) {
        const auto steps = static_cast<std::uint32_t>(1 + seq.value % 3);
        const std::array batch = {upload_batch(*session, seq, "a large state", steps)};
        EXPECT_TRUE(session->commit(batch, {}).is_ok());
      }
    }
    produced_ = true;
  }

  void reclaim(const Stream& stream) {
    Reclaimer reclaimer(stream);
    while (!produced_) {
      const auto report = reclaimer.run({});
      ASSERT_TRUE(report.is_ok()) << report.status().to_string();
      tally_.trimmed += report->steps_trimmed;
      tally_.removed += report->batches_removed;
    }
  }

  void trim_often(const Stream& stream) {
    ManifestReader reader(stream);
    while (!produced_) {
      const auto report = trim(stream, reader, {});
      ASSERT_TRUE(report.is_ok()) << report.status().to_string();
      tally_.trimmed += report->steps;
    }
  }

  // Pins, holds and releases, each time a step that was there a moment ago: at the end, or where a
  // trim may just be passing.
  void pin_some(SimProcess& process, const Stream& stream, const std::string& id) {
    while (!produced_) {
      const HeadPtr head = newest(stream);
      const Step first = head->head.first_step;
      const std::uint64_t steps = head->head.next_step - first;
      const std::uint64_t near = process.random() % (std::min<std::uint64_t>(steps, 3) + 1);
      const Step step = id == "early" ? first + near : head->head.next_step - near;
      const auto pin = pin_step(stream, {.group = "g", .id = id, .step = step}, {});
      if (pin.is(ErrorKind::kNotFound)) {
        ++tally_.refused;
        continue;
      }
      ASSERT_TRUE(pin.is_ok()) << pin.status().to_string();
      ++tally_.pinned;
      for (int look = 0; look < 3; ++look) expect_kept(stream, step);
      EXPECT_EQ(unpin(stream, "g", id, {}).value(), 1u);
    }
  }

  void move_cursor(SimProcess& process, const Stream& stream) {
    for (int i = 0; i < 2; ++i) {
      const Step step = newest(stream)->head.first_step;
      const auto opened = open_live_cursor(stream, "c", step, {});
      if (!opened.is_ok()) {
        EXPECT_TRUE(opened.is(ErrorKind::kNotFound)) << opened.status().to_string();
        continue;
      }
      Step kept = step;
      for (int report = 0; report < 3; ++report) {
        expect_kept(stream, kept);
        kept = report_live_cursor(stream, "c", kept + process.random() % 3, {})->keep_from;
      }
      expect_kept(stream, kept);
      EXPECT_TRUE(close_live_cursor(stream, "c", {}).is_ok());
    }
  }

  // All steps from `step` on are there.
  void expect_kept(const Stream& stream, Step step) {
    const HeadPtr head = newest(stream);
    SegmentReader segments(stream);
    bool kept = head->head.first_step <= step;
    while (kept && step < head->head.next_step) {
      const auto entry = segments.find(head->head, step, {});
      kept =
          entry.is_ok() && stream.objects().head(data_key(entry->object()), {}).value().has_value();
      if (kept) step = entry->end_step();
    }
    tally_.broken_promises += kept ? 0 : 1;
  }

  void expect_sound(SimProcess& judge) {
    const auto stream = Stream::open({judge, *objects_, counters_}, options_, {}).value();
    ASSERT_TRUE(Reclaimer(*stream).run({}).is_ok());
    const auto report = verify_stream(*stream, VerifyDepth::kManifest, {});
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
    EXPECT_EQ(report->orphans.batches + report->orphans.states + report->orphans.segments, 0u);
  }

  const StreamOptions options_;
  Counters counters_;
  Tally tally_;
  bool produced_ = false;
  std::unique_ptr<SimWorld> world_;
  std::unique_ptr<objstore::MemoryStore> objects_;
  std::vector<std::unique_ptr<ScriptedStore>> views_;
};

Tally run_worlds(std::uint64_t seeds, std::optional<Safeguard> broken) {
  Tally tally;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    tally.add(PinnedWorld(seed, broken).run());
    if (testing::Test::HasFailure() || tally.broken_promises > 0) break;
  }
  return tally;
}

TEST(TrimInterleaving, EveryPromiseIsKept) {
  const Tally tally = run_worlds(150, std::nullopt);
  EXPECT_EQ(tally.broken_promises, 0u);
  EXPECT_GT(tally.trimmed, 500u);
  EXPECT_GT(tally.removed, 200u);
  EXPECT_GT(tally.pinned, 500u);
  EXPECT_GT(tally.refused, 5u);
  EXPECT_GT(tally.withdrawn, 2u);
}

TEST(TrimInterleaving, WithoutTheSecondListingSomeAreBroken) {
  EXPECT_GT(run_worlds(150, Safeguard::kSecondPinListing).broken_promises, 0u);
}

TEST(TrimInterleaving, UnderAnyIntentSomeAreBroken) {
  EXPECT_GT(run_worlds(150, Safeguard::kIntentOwner).broken_promises, 0u);
}

TEST(TrimInterleaving, WithPacksCutSomeAreBroken) {
  EXPECT_GT(run_worlds(30, Safeguard::kPackTrim).broken_promises, 0u);
}

}  // namespace
}  // namespace batchloom::store
