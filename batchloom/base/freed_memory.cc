// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/freed_memory.h"

#include <cstdlib>  // Says whether the C library is glibc.

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace batchloom {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // The most that glibc takes.
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB - 1);
  mallopt(M_TOP_PAD, 16 * kMiB);
#endif
}

}  // namespace batchloom
