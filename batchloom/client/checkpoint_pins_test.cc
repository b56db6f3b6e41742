// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/checkpoint_pins.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::client {
namespace {

using store::Step;
using testing::ElementsAre;

class CheckpointPinsTest : public testing::Test {
 protected:
  CheckpointPinsTest() {
    const store::StreamDeps deps{runtime_, objects_, counters_};
    EXPECT_TRUE(store::init_stream(deps, "test", {}).is_ok());
    stream_ = store::Stream::open(deps, {}, {}).value();
  }

  void pin(std::uint64_t step, std::uint64_t keep, const std::string& id) {
    const Status pinned =
        pin_checkpoint(*stream_, {.group = "g", .id = id, .step = Step(step)}, keep, {});
    EXPECT_TRUE(pinned.is_ok()) << pinned.to_string();
  }
  void pin(std::uint64_t step, std::uint64_t keep) {
    pin(step, keep, fmt::format("step-{}", step));
  }

  /// By step.
  std::vector<std::string> ids(const std::string& group = "g") {
    std::vector<std::string> ids;
    for (const store::Pin& pin : store::list_pins(*stream_, group, {}).value()) {
      ids.push_back(pin.name.id);
    }
    return ids;
  }

  store::SeededRuntime runtime_;
  objstore::MemoryStore objects_{runtime_};
  Counters counters_;
  std::unique_ptr<store::Stream> stream_;
};

TEST_F(CheckpointPinsTest, TheNewestStay) {
  for (const std::uint64_t step : {8u, 16u, 24u, 100u}) pin(step, 2);
  EXPECT_THAT(ids(), ElementsAre("step-24", "step-100"));
}

TEST_F(CheckpointPinsTest, ACheckpointThatWasWrittenTwiceCountsOnce) {
  pin(8, 9);
  pin(16, 9);
  pin(16, 1);
  EXPECT_THAT(ids(), ElementsAre("step-16", "step-16"));
  pin(24, 1);
  EXPECT_THAT(ids(), ElementsAre("step-24"));
}

TEST_F(CheckpointPinsTest, OneNameMayMoveOn) {
  for (const std::uint64_t step : {8u, 16u, 24u}) pin(step, 2, "latest");
  EXPECT_THAT(ids(), ElementsAre("latest", "latest"));
  pin(16, 1, "latest");
  const auto left = store::list_pins(*stream_, "g", {}).value();
  for (const store::Pin& pin : left) EXPECT_EQ(pin.step, Step(16));
}

TEST_F(CheckpointPinsTest, AfterGoingBackThoseAheadGoFirst) {
  for (const std::uint64_t step : {40u, 48u, 16u}) pin(step, 2);
  EXPECT_THAT(ids(), ElementsAre("step-16", "step-48"));
  pin(24, 2);
  EXPECT_THAT(ids(), ElementsAre("step-16", "step-24"));
  pin(16, 2);
  EXPECT_THAT(ids(), ElementsAre("step-16", "step-16", "step-24"));
}

TEST_F(CheckpointPinsTest, ThePinJustMadeStays) {
  for (const std::uint64_t keep : {0u, 1u}) {
    for (const std::uint64_t step : {8u, 100u, 16u}) {
      pin(step, keep);
      EXPECT_THAT(ids(), ElementsAre(fmt::format("step-{}", step)));
    }
  }
  pin(16, 1, "step-0");  // Another name at this step.
  EXPECT_THAT(ids(), ElementsAre("step-0"));
}

TEST_F(CheckpointPinsTest, OtherSeriesAndGroupsAreLeftAlone) {
  for (const char* id : {"best", "step-best", "step-1-of-2"}) pin(1, 9, id);
  const store::PinRequest other{.group = "other", .id = "step-2", .step = Step(2)};
  EXPECT_TRUE(pin_checkpoint(*stream_, other, 1, {}).is_ok());
  for (const std::uint64_t step : {8u, 16u}) pin(step, 1);
  EXPECT_THAT(ids(), ElementsAre("best", "step-1-of-2", "step-best", "step-16"));
  EXPECT_THAT(ids("other"), ElementsAre("step-2"));
}

TEST_F(CheckpointPinsTest, ABadNameIsRefused) {
  const Status refused = pin_checkpoint(*stream_, {.group = "g", .id = "", .step = Step(1)}, 1, {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_TRUE(ids().empty());
}

TEST(PinSeries, IsTheNameButForItsDigits) {
  EXPECT_EQ(pin_series("step-8"), pin_series("step-1600"));
  EXPECT_EQ(pin_series("epoch2-step3"), "epoch#-step#");
  EXPECT_EQ(pin_series("best"), "best");
  EXPECT_NE(pin_series("step-1"), pin_series("step-"));
}

}  // namespace
}  // namespace batchloom::client
