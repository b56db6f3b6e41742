// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "batchloom/objstore/file_ops.h"

namespace batchloom::objstore {

/// A new file without a name in `temp_folder` (O_TMPFILE); null where the file system has no such.
Result<std::unique_ptr<TempFile>> open_unnamed_temp(const std::string& temp_folder);

/// A new file with a random name in `temp_folder`, under its flock.
Result<std::unique_ptr<TempFile>> open_named_temp(const std::string& temp_folder);

}  // namespace batchloom::objstore
