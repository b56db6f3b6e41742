// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/read_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace batchloom::store {
namespace {

TEST(ReadBuffers, GiveOutWhatWasLetGo) {
  ReadBuffers buffers;
  EXPECT_TRUE(buffers.take(200).empty());
  auto bytes = buffers.share(Bytes(200));
  const std::byte* const memory = bytes->data();
  auto also = bytes;
  bytes.reset();
  EXPECT_TRUE(buffers.take(200).empty()) << "somebody still shares it";
  also.reset();
  const Bytes again = buffers.take(200);
  EXPECT_EQ(again.data(), memory);
  EXPECT_EQ(again.size(), 200U);
  EXPECT_TRUE(buffers.take(200).empty()) << "once";
}

TEST(ReadBuffers, GiveOutTheSmallestThatWillDo) {
  ReadBuffers buffers;
  std::vector<std::shared_ptr<const Bytes>> shared;
  for (const std::size_t size : {100U, 300U, 200U, 250U})
    shared.push_back(buffers.share(Bytes(size)));
  shared.clear();
  EXPECT_TRUE(buffers.take(301).empty());
  EXPECT_TRUE(buffers.take(49).empty()) << "most of it would not be used";
  EXPECT_EQ(buffers.take(201).size(), 250U);
  EXPECT_EQ(buffers.take(201).size(), 300U);
  EXPECT_EQ(buffers.take(50).size(), 100U);
  EXPECT_EQ(buffers.take(200).size(), 200U);
}

TEST(ReadBuffers, MayEndFirst) {
  auto buffers = std::make_unique<ReadBuffers>();
  const auto last = buffers->share(Bytes(10));
  buffers.reset();
  EXPECT_EQ(last->size(), 10U);
}

TEST(ReadBuffers, KeepTheLastOfWhatIsAboveTheirBound) {
  ReadBuffers buffers;
  const std::size_t half = ReadBuffers::kKeptBytesMax / 2;
  for (const std::size_t size : {half, half + 1, half - 1}) buffers.share(Bytes(size)).reset();
  EXPECT_EQ(buffers.take(half).size(), half + 1);
  EXPECT_TRUE(buffers.take(half).empty());
  buffers.share(Bytes(2 * half + 1)).reset();
  EXPECT_TRUE(buffers.take(2 * half).empty()) << "too large to be kept";
  EXPECT_EQ(buffers.take(half - 1).size(), half - 1);
}

}  // namespace
}  // namespace batchloom::store
