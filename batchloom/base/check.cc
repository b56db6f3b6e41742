// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace batchloom::internal {

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace batchloom::internal
