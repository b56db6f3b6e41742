// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/retain_gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::control {
namespace {

using store::Seq;
using store::Step;

/// A stream of one step; its first ten objects have the same size.
class RetainGateTest : public store::TrimTest {
 protected:
  RetainGateTest() { commit(1); }

  RetainGate gate(std::uint64_t max_bytes) { return {*stream_, {max_bytes, "./x"}}; }
  /// At once: there is room or there is none.
  bool enters(RetainGate& gate) {
    const Status entered = gate.wait(runtime_.within(std::chrono::milliseconds(500)));
    EXPECT_TRUE(entered.is_ok() || entered.is(ErrorKind::kUnavailable)) << entered.to_string();
    return entered.is_ok();
  }
  /// Another session's batches, as far as the gate is concerned.
  void commit(std::uint64_t count) {
    for (; count > 0; --count) {
      const auto batch = store::upload_batch(*session_, seq_);
      object_bytes_ = batch.size_bytes;
      total_bytes_ += batch.size_bytes;
      ASSERT_TRUE(session_->commit(std::span(&batch, 1), {}).is_ok());
      ++seq_;
    }
  }
  void commit_own(RetainGate& gate) {
    commit(1);
    gate.note_commit(object_bytes_, Step(seq_.value));
  }
  void trim_to(std::uint64_t step) {
    static_cast<void>(pin(Step(step), "to-" + std::to_string(step)));
    for (const store::Pin& other : store::list_pins(*stream_, {}).value()) {
      if (other.step < Step(step)) {
        ASSERT_TRUE(store::unpin(*stream_, "g", other.name.id, {}).is_ok());
      }
    }
    static_cast<void>(run_trim());
    ASSERT_EQ(first_step(), Step(step));
  }

  std::unique_ptr<store::ProducerSession> session_ = store::open_session(*stream_, "p");
  Seq seq_;
  std::uint64_t object_bytes_ = 0;  ///< Of the last one.
  std::uint64_t total_bytes_ = 0;
};

TEST_F(RetainGateTest, WithoutABoundEverythingEnters) {
  RetainGate gate(*stream_, {.max_bytes = {}, .url = "./x"});
  const std::size_t asked = objects_.requests().size();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(enters(gate));
  EXPECT_EQ(objects_.requests().size(), asked) << "and nothing is read";
}

TEST_F(RetainGateTest, WaitsWhereTheStreamHoldsSoMuch) {
  RetainGate gate = this->gate(4 * object_bytes_);
  commit(2);
  ASSERT_TRUE(enters(gate)) << "3 are less than 4";
  commit_own(gate);
  EXPECT_FALSE(enters(gate));
  trim_to(2);
  EXPECT_TRUE(enters(gate));
}

TEST_F(RetainGateTest, WhatIsUnderWayCounts) {
  RetainGate gate = this->gate(4 * object_bytes_);
  ASSERT_TRUE(enters(gate));
  EXPECT_FALSE(enters(gate)) << "nobody knows yet how large they are";
  commit_own(gate);
  EXPECT_TRUE(enters(gate));
  EXPECT_TRUE(enters(gate));
  EXPECT_FALSE(enters(gate));
  gate.give_back(2);
  EXPECT_TRUE(enters(gate));
}

TEST_F(RetainGateTest, WhatIsCommittedIsNoMoreUnderWay) {
  RetainGate gate = this->gate(5 * object_bytes_);
  for (std::uint64_t held = 1; held < 5; ++held) {
    ASSERT_TRUE(enters(gate)) << held << " are less than 5, and none is on its way";
    commit_own(gate);
  }
  EXPECT_FALSE(enters(gate));
}

TEST_F(RetainGateTest, AStreamThatHoldsNothingTakesOneHoweverLarge) {
  trim_to(1);
  RetainGate gate = this->gate(1);
  ASSERT_TRUE(enters(gate));
  EXPECT_FALSE(enters(gate));
  commit_own(gate);
  EXPECT_FALSE(enters(gate));
  trim_to(2);
  EXPECT_TRUE(enters(gate));
}

TEST_F(RetainGateTest, CountsThroughSegments) {
  commit(20);
  RetainGate full = gate(total_bytes_);
  EXPECT_FALSE(enters(full));
  RetainGate roomy = gate(total_bytes_ + 1);
  EXPECT_TRUE(enters(roomy));
  trim_to(13);
  EXPECT_TRUE(enters(full));
}

TEST_F(RetainGateTest, SaysWhatKeepsTheOldestStep) {
  RetainGate gate = this->gate(object_bytes_);
  const auto said = [&] {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(enters(gate));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said().find("no pin says what may go"), std::string::npos);
  EXPECT_EQ(said(), "") << "it was said";
  trim_to(1);
  ASSERT_TRUE(enters(gate));
  commit_own(gate);
  EXPECT_NE(said().find("pin 'to-1' of group 'g' keeps step 1 and what follows"),
            std::string::npos);
  ASSERT_TRUE(store::unpin(*stream_, "g", "to-1", {}).is_ok());
  ASSERT_TRUE(store::open_live_cursor(*stream_, "job", Step(1), {}).is_ok());
  RetainGate other = this->gate(object_bytes_);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(enters(other));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("group 'job', which reads, keeps step 1"),
            std::string::npos);
}

}  // namespace
}  // namespace batchloom::control
