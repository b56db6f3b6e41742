// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_state.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace batchloom::control {
namespace {

using testing::HasSubstr;

PipelineState some_state() {
  PipelineState state;
  state.membership = {.high = 0x1122334455667788, .low = 0x99aabbccddeeff00};
  state.struck = {{model::SourceId(0), model::RecordIndex(7)},
                  {model::SourceId(1), model::RecordIndex(0)},
                  {model::SourceId(1), model::RecordIndex(1ULL << 40)}};
  state.planner.mixture.max_sample_tokens = 16;
  state.planner.mixture.step = model::Step(41);
  state.planner.mixture.sources.resize(2);
  state.planner.mixture.sources[0].credit = 5;
  state.planner.mixture.sources[1].credit = -5;
  return state;
}

TEST(PipelineState, RoundTrips) {
  const PipelineState state = some_state();
  const Bytes bytes = encode_pipeline_state(state);
  EXPECT_EQ(decode_pipeline_state(bytes).value(), state);
  PipelineState bare = state;
  bare.struck.clear();
  EXPECT_EQ(decode_pipeline_state(encode_pipeline_state(bare)).value(), bare);
  EXPECT_EQ(bytes.size(), encode_pipeline_state(bare).size() + 3 * 12);
}

TEST(PipelineState, CutAnywhereItIsRefused) {
  const Bytes bytes = encode_pipeline_state(some_state());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto state = decode_pipeline_state(ByteSpan(bytes).first(size));
    ASSERT_TRUE(state.is(ErrorKind::kCorruption)) << size;
    EXPECT_THAT(state.status().to_string(), HasSubstr("byte")) << size;
  }
}

std::string complaint_of(const PipelineState& state) {
  return decode_pipeline_state(encode_pipeline_state(state)).status().to_string();
}

TEST(PipelineState, WhatContradictsItselfIsRefused) {
  PipelineState state = some_state();
  std::swap(state.struck[0], state.struck[1]);
  EXPECT_THAT(complaint_of(state), HasSubstr("byte 38: records struck out do not ascend"));
  state = some_state();
  state.struck[2].source = model::SourceId(2);
  EXPECT_THAT(complaint_of(state),
              HasSubstr("a record of source 2 is struck out, and there are 2"));
  state = some_state();
  state.struck.assign(kStruckMax + 1, {});
  EXPECT_THAT(complaint_of(state), HasSubstr("4097 records struck out; at most 4096"));
  Bytes later = encode_pipeline_state(some_state());
  later[4] = std::byte{2};
  EXPECT_TRUE(decode_pipeline_state(later).is(ErrorKind::kInvalid));
  later[0] = std::byte{'X'};
  EXPECT_THAT(decode_pipeline_state(later).status().to_string(), HasSubstr("byte 0: another mark"));
}

}  // namespace
}  // namespace batchloom::control
