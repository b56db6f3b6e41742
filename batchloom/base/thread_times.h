// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "batchloom/base/runtime.h"

namespace batchloom {

/// What a thread has had of the machine's cores.
struct ThreadTimes {
  Duration cpu{0};    ///< On a core.
  Duration ready{0};  ///< It could have run, and others had the cores.

  friend ThreadTimes operator-(const ThreadTimes& a, const ThreadTimes& b) {
    return {.cpu = a.cpu - b.cpu, .ready = a.ready - b.ready};
  }
  friend bool operator==(const ThreadTimes&, const ThreadTimes&) = default;
};

/// Who tells it of the calling thread. Injected where code measures itself: a simulation has no
/// cores, and gives another one or none.
using ReadThreadTimes = std::function<ThreadTimes()>;

/// Of the calling thread, as Linux counts it since the thread began. Takes some microseconds.
/// `ready` is 0 where the kernel does not count it.
ThreadTimes thread_times();

}  // namespace batchloom
