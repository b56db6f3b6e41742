// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/source_state.h"

#include <gtest/gtest.h>

namespace batchloom::simulator {
namespace {

TEST(SourceState, IsReadBackAsWritten) {
  EXPECT_EQ(decode_source_state(encode_source_state(77, 0)), 77U);
  EXPECT_EQ(decode_source_state(encode_source_state(77, 5)), 77U);
  EXPECT_EQ(encode_source_state(77, 5).size(), encode_source_state(77, 0).size() + 5);
  EXPECT_EQ(decode_source_state({}), 0U);
}

}  // namespace
}  // namespace batchloom::simulator
