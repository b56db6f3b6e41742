// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"

namespace batchloom::control {

/// Does `work` for each number below `count`, in ascending order and by so many threads at once,
/// until one fails. The error of the lowest number that fails, whatever the threads do. `work` is
/// thread-safe.
Status for_each_number(Runtime& runtime, std::uint32_t threads, std::size_t count,
                       const std::function<Status(std::size_t)>& work);

}  // namespace batchloom::control
