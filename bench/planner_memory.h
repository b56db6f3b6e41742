// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/planner_cases.h"

namespace batchloom {

/// The largest resident set (ru_maxrss) of a process that does nothing else.
struct PlannerMemory {
  double before_mib = 0;  ///< Before it plans: code, libraries, and what it was forked with.
  double peak_mib = 0;    ///< With one step of each distribution and context, its lengths included.
};

/// Forks: call it while this process has no thread, and little memory, which the child begins with.
PlannerMemory measure_memory(const PlannerCase& of);

}  // namespace batchloom
