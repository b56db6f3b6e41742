// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

#include "batchloom/base/log.h"

namespace batchloom::simulator {

/// How many seeds a test of whole worlds runs: the environment's BATCHLOOM_SIM_SEEDS, else 300,
/// which take a few seconds. Fewer for sanitizers, more for a night.
inline std::uint64_t sim_seeds() {
  const char* text = std::getenv("BATCHLOOM_SIM_SEEDS");
  return text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
}

/// Drops what simulated processes have to say of their faults.
struct QuietLog {
  QuietLog() { set_log_level(LogLevel::kError); }
};
inline const QuietLog kQuiet;

}  // namespace batchloom::simulator
