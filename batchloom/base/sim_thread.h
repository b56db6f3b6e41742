// SPDX-License-Identifier: Apache-2.0
// Inside of sim_runtime.h: one thread of a world, and the handing over of the baton.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace batchloom {
class SimProcess;
}

namespace batchloom::internal {

/// Why a blocked thread goes on.
enum WakeReason : int { kWokenByEvent, kWokenByTimer, kWokenByStop, kWokenByCrash };

/// Owned by its world. Every field but `baton` belongs to the baton's holder.
struct SimThread {
  std::string name;
  SimProcess* process = nullptr;
  std::thread os_thread;
  std::function<void()> body;
  std::vector<SimThread*> joiners;
  std::uint64_t wait = 0;  ///< Counts its waits, so that stale timers are recognised.
  int wake_reason = kWokenByEvent;
  bool blocked = false;
  bool finished = false;
  std::atomic<std::uint32_t> baton{0};

  /// Blocks the calling thread until it is given the baton.
  void take_baton();
  /// Gives the baton to this thread. The caller must not touch the world any more.
  void give_baton();
};

}  // namespace batchloom::internal
