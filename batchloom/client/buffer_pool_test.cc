// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/buffer_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace batchloom::client {
namespace {

constexpr std::uint64_t kMuchMemory = std::uint64_t{1} << 30;

class BufferPoolTest : public testing::Test {
 protected:
  std::uint64_t made() { return counters_.counter("client_buffers_made").value(); }
  std::uint64_t reused() { return counters_.counter("client_buffers_reused").value(); }

  Counters counters_;
};

TEST_F(BufferPoolTest, WhatWasGivenBackIsTakenAgain) {
  BufferPool pool(kMuchMemory, counters_);
  const std::byte* first = nullptr;
  {
    const PooledBuffer buffer = pool.take(100'000);
    first = buffer.bytes().data();
    EXPECT_EQ(pool.kept_bytes(), 0U) << "it is in use";
  }
  EXPECT_GE(pool.kept_bytes(), 100'000U);
  EXPECT_EQ(pool.take(99'000).bytes().data(), first);
  EXPECT_EQ(made(), 1U);
  EXPECT_EQ(reused(), 1U);
}

TEST_F(BufferPoolTest, SlightlyMoreBytesAreThereToo) {
  BufferPool pool(kMuchMemory, counters_);
  for (std::size_t size = 1'000'000; size < 1'040'000; size += 1'000) {
    EXPECT_EQ(pool.take(size).bytes().size(), size);
  }
  EXPECT_LE(made(), 2U);
}

TEST_F(BufferPoolTest, TheSmallestThatWillDoIsTaken) {
  BufferPool pool(kMuchMemory, counters_);
  const std::byte* small = nullptr;
  {
    const PooledBuffer large = pool.take(1 << 20);
    const PooledBuffer buffer = pool.take(1 << 14);
    small = buffer.bytes().data();
  }
  EXPECT_EQ(pool.take(1 << 13).bytes().data(), small);
}

TEST_F(BufferPoolTest, WhatLiesThereLongestGoesFirst) {
  BufferPool pool(2 * 4096, counters_);
  {
    PooledBuffer a = pool.take(4096), b = pool.take(4096), c = pool.take(4096);
    const std::byte* first = a.bytes().data();
    a = PooledBuffer();
    b = PooledBuffer();
    c = PooledBuffer();
    EXPECT_EQ(pool.kept_bytes(), 2 * 4096U);
    const PooledBuffer again = pool.take(1), and_again = pool.take(1);
    EXPECT_EQ(reused(), 2U);
    EXPECT_NE(again.bytes().data(), first) << "it was dropped, and its place is free";
  }
  {
    const PooledBuffer small = pool.take(4096), other = pool.take(4096);
    const PooledBuffer too_large = pool.take(3 * 4096);
  }
  EXPECT_EQ(pool.kept_bytes(), 2 * 4096U);
}

TEST_F(BufferPoolTest, TwoAreKeptThoughTheyAreLargerThanAllKeptOnesMayBe) {
  BufferPool pool(1, counters_);
  for (int step = 0; step < 5; ++step) {
    const PooledBuffer before = pool.take(1 << 20), now = pool.take(1 << 20);
    const PooledBuffer ahead = pool.take(1 << 20);
  }
  EXPECT_EQ(made(), 3U + 4U) << "of the three that each step needs, two are there";
  EXPECT_LE(pool.kept_bytes(), 2 * (1U << 20) * 9 / 8);
}

TEST_F(BufferPoolTest, BuffersOutliveTheirPool) {
  PooledBuffer buffer;
  EXPECT_TRUE(buffer.bytes().empty());
  buffer = BufferPool(kMuchMemory, counters_).take(10);
  std::ranges::fill(buffer.bytes(), std::byte{7});
  EXPECT_EQ(buffer.bytes()[9], std::byte{7});
}

RC_GTEST_PROP(BufferPool, UsersNeverShareBytesAndNoMoreIsKeptThanAllowed,
              (const std::vector<std::uint16_t>& sizes)) {
  constexpr std::uint64_t kKept = 160'000;  // More than any two of them take.
  Counters counters;
  BufferPool pool(kKept, counters);
  std::vector<PooledBuffer> in_use;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    in_use.push_back(pool.take(sizes[i]));
    const auto bytes = in_use.back().bytes();
    RC_ASSERT(bytes.size() == sizes[i]);
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0U);
    std::ranges::fill(bytes, static_cast<std::byte>(i));
    if (sizes[i] % 3 == 0) {
      std::swap(in_use[sizes[i] % in_use.size()], in_use.back());
      in_use.pop_back();
    }
    RC_ASSERT(pool.kept_bytes() <= kKept);
  }
  for (const PooledBuffer& buffer : in_use) {
    const auto bytes = buffer.bytes();
    RC_ASSERT(std::ranges::all_of(bytes, [&](std::byte b) { return b == bytes.front(); }));
  }
}

}  // namespace
}  // namespace batchloom::client
