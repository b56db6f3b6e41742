// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace batchloom {
namespace {

/// Whether malloc() is glibc's: sanitizers bring one of their own, which nothing of this reaches.
bool allocator_is_glibcs() {
#ifdef __GLIBC__
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = in_use();
  void* volatile block = std::malloc(std::size_t{1} << 20);
  const bool counted = in_use() > before;
  std::free(block);
  return counted;
#else
  return false;
#endif
}

long faults_so_far() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Takes memory as a batch does (8 blocks of 4 MiB), writes to every page, and frees it.
void come_and_go() {
  constexpr std::size_t kBlock = std::size_t{4} << 20;
  constexpr std::size_t kPage = 4096;
  std::array<void*, 8> blocks = {};
  for (void*& block : blocks) {
    block = std::malloc(kBlock);
    auto* bytes = static_cast<volatile char*>(block);
    for (std::size_t at = 0; at < kBlock; at += kPage) bytes[at] = 1;
  }
  for (void* block : blocks) std::free(block);
}

/// Page faults of 20 batches after a first one, in a process of its own: the setting is for good,
/// and what other tests have freed must not count.
long faults_of_batches(bool keep) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (keep) keep_freed_memory();
    come_and_go();
    const long before = faults_so_far();
    for (int batch = 0; batch < 20; ++batch) come_and_go();
    const long faults = faults_so_far() - before;
    _exit(write(ends[1], &faults, sizeof(faults)) == ssize_t{sizeof(faults)} ? 0 : 1);
  }
  close(ends[1]);
  long faults = -1;
  EXPECT_EQ(read(ends[0], &faults, sizeof(faults)), ssize_t{sizeof(faults)});
  close(ends[0]);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return faults;
}

TEST(FreedMemory, ComesBackWithoutPageFaults) {
  if (!allocator_is_glibcs()) GTEST_SKIP() << "another allocator than glibc's";
  constexpr long kPagesOfABatch = 8 * 1024;
  // At the first touch of each page there is a fault, unless huge pages stand behind it.
  const long unset = faults_of_batches(false);
  const long kept = faults_of_batches(true);
  EXPECT_LT(kept, 100) << "of " << 20 * kPagesOfABatch << " pages that were written to; " << unset
                       << " faults without the setting";
  EXPECT_GT(unset, 10 * (kept + 10)) << "the setting should make the difference";
}

}  // namespace
}  // namespace batchloom
