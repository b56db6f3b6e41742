// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stored_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "batchloom/control/stream_settings.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::control {
namespace {

using store::Seq;
using store::Step;
using testing::HasSubstr;

/// One that says after which step it is.
PipelineState state_after(std::uint64_t step) {
  PipelineState state;
  state.planner.mixture.step = Step(step + 1);
  state.planner.mixture.sources.resize(2);
  return state;
}

/// All states stand beside heads.
store::Limits states_beside() {
  store::Limits limits;
  limits.inline_state_max_bytes = 8;
  return limits;
}

class StoredStateTest : public store::StoreTest {
 protected:
  StoredStateTest() : StoreTest(states_beside()) {}

  /// Commits steps at once, up to `last`.
  void commit(std::uint64_t first, std::uint64_t last) {
    std::vector<store::PendingBatch> batches;
    for (std::uint64_t step = first; step <= last; ++step) {
      const Bytes state = encode_pipeline_state(state_after(step));
      batches.push_back(store::upload_batch(*session_, Seq(step), as_text(state)));
    }
    ASSERT_TRUE(session_->commit(batches, {}).is_ok());
  }
  /// The step after which the state that was committed with `step` is; UINT64_MAX for none.
  std::uint64_t step_of_state_with(std::uint64_t step) {
    const auto found = find_stored_state(*stream_, Step(step), {});
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    if (!*found) return UINT64_MAX;
    const std::uint64_t after = (*found)->next_step.value - 1;
    EXPECT_EQ((*found)->state, state_after(after));
    return after;
  }

  std::unique_ptr<store::ProducerSession> session_ =
      store::open_session(*stream_, std::string(kPipelineProducer));
};

TEST_F(StoredStateTest, EachStepHasTheStateOfItsCommit) {
  EXPECT_EQ(step_of_state_with(0), UINT64_MAX) << "nothing is committed yet";
  commit(0, 0);
  commit(1, 3);
  append_slots(*stream_, 3);  // Events, say.
  commit(4, 4);
  commit(5, 6);
  const std::vector<std::uint64_t> expected = {0, 3, 3, 3, 4, 6, 6, UINT64_MAX};
  for (std::uint64_t step = 0; step < expected.size(); ++step) {
    EXPECT_EQ(step_of_state_with(step), expected[step]) << step;
  }
}

TEST_F(StoredStateTest, WhatAReclaimerRemovedIsNotThere) {
  commit(0, 0);
  commit(1, 3);
  const store::Slot slot = newest(*stream_)->head.slot;
  commit(4, 4);
  remove_slots(*stream_, slot - 1);
  EXPECT_EQ(step_of_state_with(0), UINT64_MAX);
  EXPECT_EQ(step_of_state_with(2), UINT64_MAX) << "its head may be of a later commit than its own";
  EXPECT_EQ(step_of_state_with(3), 3u);
  EXPECT_EQ(step_of_state_with(4), 4u);
  const store::ProducerRow row = *newest(*stream_)->head.find_producer(kPipelineProducer);
  const std::string key = store::data_key(row.state_object());
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  EXPECT_EQ(step_of_state_with(4), UINT64_MAX) << "its object is gone";
}

TEST_F(StoredStateTest, AStateThatIsNoPipelinesIsRefused) {
  const auto batch = store::upload_batch(*session_, Seq(0), "a state");
  ASSERT_TRUE(session_->commit(std::span(&batch, 1), {}).is_ok());
  const auto found = find_stored_state(*stream_, Step(0), {});
  EXPECT_TRUE(found.is(ErrorKind::kCorruption));
  EXPECT_THAT(found.status().to_string(), HasSubstr("did something else than a pipeline write"));
}

}  // namespace
}  // namespace batchloom::control
