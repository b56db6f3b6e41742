// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/read_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace batchloom::store {
namespace {

TEST(ReadBuffers, GiveOutWhatWasLetGo) {
  ReadBuffers buffers;
  EXPECT_TRUE(buffers.take().empty());
  auto bytes = buffers.share(Bytes(200));
  const std::byte* const memory = bytes->data();
  auto also = bytes;
  bytes.reset();
  EXPECT_TRUE(buffers.take().empty()) << "somebody still shares it";
  also.reset();
  const Bytes again = buffers.take();
  EXPECT_EQ(again.data(), memory);
  EXPECT_EQ(again.size(), 200U);
  EXPECT_TRUE(buffers.take().empty()) << "once";
}

TEST(ReadBuffers, KeepTheFirstFewOfManyAndMayEndFirst) {
  auto buffers = std::make_unique<ReadBuffers>();
  std::vector<std::shared_ptr<const Bytes>> shared;
  for (std::size_t i = 0; i < 6; ++i) shared.push_back(buffers->share(Bytes(10)));
  const auto last = shared.back();
  shared.clear();
  std::size_t kept = 0;
  while (!buffers->take().empty()) ++kept;
  EXPECT_EQ(kept, 4U);
  buffers.reset();
  EXPECT_EQ(last->size(), 10U);
}

TEST(ReadBuffers, DoNotKeepMoreThanTheirBound) {
  ReadBuffers buffers;
  const std::size_t half = ReadBuffers::kKeptBytesMax / 2;
  std::vector<std::shared_ptr<const Bytes>> shared = {
      buffers.share(Bytes(half)), buffers.share(Bytes(half + 1)), buffers.share(Bytes(half - 1))};
  for (auto& bytes : shared) bytes.reset();
  EXPECT_EQ(buffers.take().size(), half - 1);
  EXPECT_EQ(buffers.take().size(), half);
  EXPECT_TRUE(buffers.take().empty());
}

}  // namespace
}  // namespace batchloom::store
