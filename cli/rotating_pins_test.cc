// SPDX-License-Identifier: Apache-2.0
#include "cli/rotating_pins.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::cli {
namespace {

using store::Step;

class RotatingPinsTest : public testing::Test {
 protected:
  RotatingPinsTest() {
    const store::StreamDeps deps{runtime_, objects_, counters_};
    EXPECT_TRUE(store::init_stream(deps, "test", {}).is_ok());
    stream_ = store::Stream::open(deps, {}, {}).value();
  }

  std::vector<std::string> ids(const std::string& group) {
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

TEST_F(RotatingPinsTest, TheNewestStay) {
  RotatingPins pins(*stream_, "g", 2);
  for (const std::uint64_t step : {8u, 16u, 24u, 100u}) {
    ASSERT_TRUE(pins.pin(Step(step), {}).is_ok());
  }
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-24", "step-100"}));
}

TEST_F(RotatingPinsTest, ThoseOfAnEarlierProcessGoToo) {
  ASSERT_TRUE(RotatingPins(*stream_, "g", 9).pin(Step(8), {}).is_ok());
  ASSERT_TRUE(RotatingPins(*stream_, "g", 9).pin(Step(16), {}).is_ok());
  ASSERT_TRUE(RotatingPins(*stream_, "g", 1).pin(Step(16), {}).is_ok());  // Written again.
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-16", "step-16"}));
  ASSERT_TRUE(RotatingPins(*stream_, "g", 1).pin(Step(24), {}).is_ok());
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-24"}));
}

TEST_F(RotatingPinsTest, AfterGoingBackThoseAheadGoFirst) {
  RotatingPins pins(*stream_, "g", 2);
  for (const std::uint64_t step : {40u, 48u}) ASSERT_TRUE(pins.pin(Step(step), {}).is_ok());
  ASSERT_TRUE(pins.pin(Step(16), {}).is_ok());
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-16", "step-48"}));
  ASSERT_TRUE(pins.pin(Step(24), {}).is_ok());
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-16", "step-24"}));
  ASSERT_TRUE(pins.pin(Step(16), {}).is_ok());
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"step-16", "step-16", "step-24"}));
}

TEST_F(RotatingPinsTest, ThePinJustMadeStays) {
  for (const std::uint64_t keep : {0u, 1u}) {
    RotatingPins pins(*stream_, "g", keep);
    for (const std::uint64_t step : {8u, 100u, 16u}) {
      ASSERT_TRUE(pins.pin(Step(step), {}).is_ok());
      EXPECT_EQ(ids("g"), (std::vector<std::string>{fmt::format("step-{}", step)}));
    }
  }
}

TEST_F(RotatingPinsTest, OthersAreLeftAlone) {
  for (const char* id : {"best", "step-best"}) {
    ASSERT_TRUE(store::pin_step(*stream_, {.group = "g", .id = id, .step = Step(1)}, {}).is_ok());
  }
  ASSERT_TRUE(RotatingPins(*stream_, "other", 1).pin(Step(2), {}).is_ok());
  RotatingPins pins(*stream_, "g", 1);
  for (const std::uint64_t step : {8u, 16u}) ASSERT_TRUE(pins.pin(Step(step), {}).is_ok());
  EXPECT_EQ(ids("g"), (std::vector<std::string>{"best", "step-best", "step-16"}));
  EXPECT_EQ(ids("other"), (std::vector<std::string>{"step-2"}));
}

}  // namespace
}  // namespace batchloom::cli
