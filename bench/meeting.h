// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include "batchloom/base/check.h"

namespace batchloom {

/// Where so many processes or threads wait for each other, again and again, as the ranks of a
/// training job do. Processes: forked from the one that made it.
class Meeting {
 public:
  explicit Meeting(std::uint32_t members) : members_(members) {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BL_CHECK(memory != MAP_FAILED, "memory that processes share");
    shared_ = new (memory) Shared;
    for (sem_t& gate : shared_->gates) BL_CHECK(sem_init(&gate, 1, 0) == 0, "a semaphore");
  }
  ~Meeting() {
    for (sem_t& gate : shared_->gates) sem_destroy(&gate);
    munmap(shared_, sizeof(Shared));
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// A signal ends the process where others do not come. Precondition: this member was in all
  /// rounds before. Rounds have one of two gates in turn, so that nobody who is quick goes through
  /// the gate of the round before.
  void wait(std::uint64_t round) {
    sem_t& gate = shared_->gates[round % 2];
    if (shared_->arrived.fetch_add(1) + 1 < members_) {
      alarm(kPatienceS);
      while (sem_wait(&gate) != 0) BL_CHECK(errno == EINTR, "a gate");
      alarm(0);
      return;
    }
    shared_->arrived.store(0);
    for (std::uint32_t other = 1; other < members_; ++other) sem_post(&gate);
  }

 private:
  static constexpr unsigned kPatienceS = 300;

  struct Shared {
    std::atomic<std::uint32_t> arrived = 0;
    sem_t gates[2];
  };

  const std::uint32_t members_;
  Shared* shared_;
};

}  // namespace batchloom
