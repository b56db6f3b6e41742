// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <span>

namespace batchloom {
namespace {

constexpr std::size_t kPage = 4096;

TEST(Pages, AreZeroedAlignedAndMayBeWritten) {
  const Pages pages(kPage + 1);
  EXPECT_EQ(pages.size(), kPage + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % kPage, 0U);
  const std::span<std::byte> bytes(pages.data(), pages.size());
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
  std::ranges::fill(bytes, std::byte{1});
  EXPECT_EQ(bytes.back(), std::byte{1});
}

TEST(Pages, GoBackToTheKernel) {
  std::optional<Pages> pages(std::in_place, 4 * kPage);
  void* const there = pages->data();
  EXPECT_EQ(msync(there, 4 * kPage, MS_ASYNC), 0);
  pages.reset();
  EXPECT_EQ(msync(there, 4 * kPage, MS_ASYNC), -1) << "no pages are there";
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Pages, MoreThanThereIsIsBadAlloc) {
  EXPECT_THROW(Pages(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
}

TEST(PagesDeathTest, None) {
  EXPECT_DEATH(Pages(0), "no pages");
}

}  // namespace
}  // namespace batchloom
