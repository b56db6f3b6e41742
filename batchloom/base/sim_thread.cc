// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/sim_thread.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace batchloom::internal {
namespace {

// std::atomic::wait spins before it sleeps, which is lost time where the waker shares the core.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void SimThread::take_baton() {
  while (baton.load(std::memory_order_acquire) == 0) futex(baton, FUTEX_WAIT_PRIVATE, 0);
  baton.store(0, std::memory_order_relaxed);
}

void SimThread::give_baton() {
  baton.store(1, std::memory_order_release);
  futex(baton, FUTEX_WAKE_PRIVATE, 1);
}

}  // namespace batchloom::internal
