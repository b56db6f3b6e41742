// SPDX-License-Identifier: Apache-2.0
// What the processes of a StoreWorld have in common: they draw what they do from their runtime.
#pragma once

#include <chrono>
#include <cstdint>

#include "batchloom/base/runtime.h"

namespace batchloom::simulator {

/// In [0, n).
inline std::uint64_t draw(Runtime& runtime, std::uint64_t n) {
  return runtime.random() % n;
}

/// True in one case of `n`.
inline bool one_in(Runtime& runtime, std::uint64_t n) {
  return draw(runtime, n) == 0;
}

/// A few milliseconds.
Status pause(Runtime& runtime);

/// Without a deadline, or, in one case of `odds`, with one that may well pass.
CallOptions draw_call(Runtime& runtime, std::uint64_t odds);

}  // namespace batchloom::simulator
