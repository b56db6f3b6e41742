// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/lead_gate.h"

#include <gtest/gtest.h>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::control {
namespace {

using store::LiveCursor;
using store::Step;

LiveCursor at(std::uint64_t step, bool closed = false) {
  return {.group = "g", .keep_from = Step(0), .cursor = Step(step), .counter = 1, .closed = closed};
}

TEST(Cursors, TheSlowestOpenOneCounts) {
  const LiveCursor cursors[] = {at(9), at(7), at(3, true), at(8)};
  EXPECT_EQ(slowest_cursor(Step(0), cursors), Step(7));
  EXPECT_EQ(slowest_cursor(Step(8), cursors), Step(8));  // 7 was trimmed: it cannot read on.
  EXPECT_EQ(slowest_cursor(Step(10), cursors), std::nullopt);
  EXPECT_EQ(slowest_cursor(Step(0), {}), std::nullopt);
}

TEST(Cursors, ClosedOnesSayHowFarAnybodyCame) {
  const LiveCursor cursors[] = {at(3, true), at(7, true)};
  EXPECT_EQ(furthest_cursor(Step(0), cursors), Step(7));
  EXPECT_EQ(furthest_cursor(Step(9), cursors), Step(9));
  EXPECT_EQ(furthest_cursor(Step(0), {}), Step(0));
}

class LeadGateTest : public testing::Test {
 protected:
  LeadGateTest() {
    const store::StreamDeps deps{runtime_, objects_, counters_};
    EXPECT_TRUE(store::init_stream(deps, "test", {}).is_ok());
    stream_ = store::Stream::open(deps, {}, {}).value();
  }

  LeadGate gate(std::optional<std::uint64_t> lead) {
    return LeadGate(*stream_, {.lead = lead, .url = "./x", .next_step = Step(0)});
  }
  /// At once: there is room or there is none.
  bool enters(LeadGate& gate, std::uint64_t steps) {
    const Status entered = gate.wait(steps, runtime_.within(std::chrono::milliseconds(100)));
    EXPECT_TRUE(entered.is_ok() || entered.is(ErrorKind::kUnavailable)) << entered.to_string();
    return entered.is_ok();
  }

  store::SeededRuntime runtime_;  // Its time passes only where the gate waits.
  objstore::MemoryStore objects_{runtime_};
  Counters counters_;
  std::unique_ptr<store::Stream> stream_;
};

TEST_F(LeadGateTest, LetsSoManyStepsThroughWithoutAConsumer) {
  LeadGate gate = this->gate(4);
  EXPECT_TRUE(enters(gate, 2));
  EXPECT_TRUE(enters(gate, 1));
  EXPECT_TRUE(enters(gate, 2));  // 3 is less than 4.
  EXPECT_FALSE(enters(gate, 1));
  gate.note_commit(5, Step(5));  // Committed steps are ahead as well.
  EXPECT_FALSE(enters(gate, 1));
}

TEST_F(LeadGateTest, FollowsTheLiveCursor) {
  LeadGate gate = this->gate(2);
  EXPECT_TRUE(enters(gate, 2));
  gate.note_commit(2, Step(2));
  EXPECT_FALSE(enters(gate, 2));
  ASSERT_TRUE(store::open_live_cursor(*stream_, "g", Step(0), {}).is_ok());
  EXPECT_FALSE(enters(gate, 2));
  ASSERT_TRUE(store::report_live_cursor(*stream_, "g", Step(1), {}).is_ok());
  EXPECT_TRUE(enters(gate, 2));
  ASSERT_TRUE(store::close_live_cursor(*stream_, "g", {}).is_ok());
  EXPECT_FALSE(enters(gate, 2));
}

TEST_F(LeadGateTest, WithoutABoundNothingIsRead) {
  LeadGate gate = this->gate(std::nullopt);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(enters(gate, 1000));
}

TEST_F(LeadGateTest, EndsAtTheStop) {
  LeadGate gate = this->gate(std::nullopt);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(
      gate.wait(1, {.deadline = kNever, .stop = stop.get_token()}).is(ErrorKind::kCancelled));
}

}  // namespace
}  // namespace batchloom::control
