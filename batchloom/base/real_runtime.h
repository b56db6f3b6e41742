// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/base/runtime.h"

namespace batchloom {

/// A Runtime of real threads, the machine's monotonic clock and the kernel's randomness.
/// Thread-safe.
std::unique_ptr<Runtime> make_real_runtime();

}  // namespace batchloom
