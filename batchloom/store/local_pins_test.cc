// SPDX-License-Identifier: Apache-2.0
// Pins, cursors and reclaiming over files.
#include <gmock/gmock.h>

#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using objstore::LocalStore;
using testing::IsEmpty;

/// A process on a machine whose power can be cut.
class LocalPins : public testing::Test {
 protected:
  LocalPins() { start(); }

  void start() {
    stream_.reset();
    objects_ = LocalStore::create({.root = "/store"}, files_, runtime_).value();
    const StreamDeps deps{runtime_, *objects_, counters_};
    ASSERT_TRUE(init_stream(deps, "test", {}).is_ok());
    stream_ = Stream::open(deps, {.limits = tiny_limits(), .safeguards = {}}, {}).value();
  }
  void grow(std::uint64_t count) {
    const auto session = open_session(*stream_, "p");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::array batch = {upload_batch(*session, session->next_seq() + i, "state", 2)};
      ASSERT_TRUE(session->commit(batch, {}).is_ok());
    }
  }
  Pin pin(Step step, const std::string& id = "a") {
    return pin_step(*stream_, {.group = "g", .id = id, .step = step}, {}).value();
  }
  void expect_sound() {
    const auto report = verify_stream(*stream_, VerifyDepth::kManifest, {});
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_THAT(report->problems, IsEmpty());
    EXPECT_THAT(report->foreign, IsEmpty());
  }

  objstore::PowerCutFileOps files_;
  SeededRuntime runtime_;
  Counters counters_;
  std::unique_ptr<LocalStore> objects_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(LocalPins, ALifeOnFiles) {
  grow(20);
  EXPECT_THAT(list_pins(*stream_, {}).value(), IsEmpty()) << "where there is no such folder yet";
  const Pin first = pin(Step(9));
  ASSERT_TRUE(open_live_cursor(*stream_, "g", Step(15), {}).is_ok());
  EXPECT_EQ(report_live_cursor(*stream_, "g", Step(21), {})->keep_from, Step(15));
  EXPECT_THAT(list_pins(*stream_, {}).value(), testing::ElementsAre(first));
  Reclaimer reclaimer(*stream_);
  const ReclaimReport dry = reclaimer.run({.dry_run = true}, {}).value();
  const ReclaimReport report = reclaimer.run({}).value();
  EXPECT_EQ(report.first_step, Step(9));
  EXPECT_EQ(report.batches_removed, 4u);
  EXPECT_EQ(dry.batches_removed, 4u);
  expect_sound();
  EXPECT_TRUE(
      pin_step(*stream_, {.group = "g", .id = "b", .step = Step(8)}, {}).is(ErrorKind::kNotFound));
  pin(Step(20), "c");
  EXPECT_EQ(unpin(*stream_, "g", "a", {}).value(), 1u);
  EXPECT_EQ(report_live_cursor(*stream_, "g", Step(30), {})->keep_from, Step(20));
  EXPECT_EQ(reclaimer.run({})->first_step, Step(20));
  EXPECT_TRUE(close_live_cursor(*stream_, "g", {}).is_ok());
  expect_sound();
}

TEST_F(LocalPins, WhatWasAcknowledgedOutlivesAPowerCut) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    grow(6);
    const Step step = newest(*stream_)->head.first_step + 5;
    const std::string id = "cut-" + std::to_string(seed);
    const Pin kept = pin(step, id);
    const LiveCursor cursor = open_live_cursor(*stream_, "g", step + 1, {}).value();
    files_.power_cut(seed);
    start();
    EXPECT_EQ(read_live_cursor(*stream_, "g", {}).value(), cursor);
    EXPECT_THAT(list_pins(*stream_, {}).value(), testing::Contains(kept));
    EXPECT_LE(Reclaimer(*stream_).run({})->first_step, step);
    expect_sound();
    EXPECT_EQ(unpin(*stream_, "g", id, {}).value(), 1u);
  }
}

}  // namespace
}  // namespace batchloom::store
