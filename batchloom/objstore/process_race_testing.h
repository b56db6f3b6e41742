// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "batchloom/objstore/conformance_testing.h"
#include "batchloom/objstore/race.h"

namespace batchloom::objstore {

/// One race for `key` between processes made by fork, each with a runtime and a store of its own.
/// Precondition: the calling process has no other thread.
void race_processes(ConformanceFixture& fixture, const std::string& key, const RaceBodies& bodies);

}  // namespace batchloom::objstore
