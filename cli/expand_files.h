// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::cli {

/// The files that a pattern matches as a shell would, sorted; folders are none. Blocks as long as
/// the disk does. `invalid`: s3://, which is not built yet. `unavailable`: a folder that cannot be
/// read.
Result<std::vector<std::string>> expand_files(const std::string& pattern);

}  // namespace batchloom::cli
