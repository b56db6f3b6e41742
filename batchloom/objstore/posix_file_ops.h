// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/objstore/file_ops.h"

namespace batchloom::objstore {

struct PosixFileOptions {
  /// Write files without a name (O_TMPFILE) where the file system can, so that a crash leaves
  /// nothing behind. Off: always a named file, locked by flock for as long as its writer lives.
  bool unnamed_temp_files = true;
};

/// The machine's own file systems. A signal never shortens a call; no file descriptor is inherited
/// by a program that is started meanwhile, and none is kept beyond its object. Thread-safe.
std::unique_ptr<FileOps> make_posix_file_ops(const PosixFileOptions& options = {});

}  // namespace batchloom::objstore
