// SPDX-License-Identifier: Apache-2.0
// Invariants. A failed check is a defect in Batchloom; bad input is never one (it gets a Status).
#pragma once

#include <string_view>

namespace batchloom::internal {

/// Prints condition, place and message to stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view message);

}  // namespace batchloom::internal

/// Aborts with `message` (a string; evaluated only on failure) unless `condition` holds. On in
/// every build.
#define BL_CHECK(condition, message) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::batchloom::internal::check_failed(#condition, __FILE__, __LINE__, message))
