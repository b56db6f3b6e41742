// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace batchloom {

/// From now on this process keeps the memory that it frees, up to 1 GiB, rather than giving it back
/// to the kernel: blocks of 100 KiB to 32 MiB come and go with every batch, and each page that
/// comes back costs a fault. For programs of our own; a library does not decide this for its user.
/// Without effect where the C library is not glibc.
void keep_freed_memory();

}  // namespace batchloom
