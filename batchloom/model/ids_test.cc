// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/ids.h"

#include <gtest/gtest.h>

namespace batchloom::model {
namespace {

constexpr SampleId id(std::uint32_t source, std::uint32_t epoch, std::uint64_t index,
                      std::uint32_t part) {
  return {SourceId(source), Epoch(epoch), RecordIndex(index), PartIndex(part)};
}

TEST(SampleId, ReadsAsSourceEpochIndexPart) {
  EXPECT_EQ(to_string(id(3, 1, 5'000'000'000, 2)), "3:1:5000000000:2");
}

TEST(SampleId, IsOrderedLexicographically) {
  EXPECT_LT(id(0, 9, 9, 9), id(1, 0, 0, 0));
  EXPECT_LT(id(1, 0, 9, 9), id(1, 1, 0, 0));
  EXPECT_LT(id(1, 1, 0, 9), id(1, 1, 1, 0));
  EXPECT_LT(id(1, 1, 1, 0), id(1, 1, 1, 1));
  EXPECT_EQ(id(1, 1, 1, 1), id(1, 1, 1, 1));
}

}  // namespace
}  // namespace batchloom::model
