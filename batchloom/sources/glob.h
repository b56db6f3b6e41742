// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::sources {

/// The plain files that a shell's pattern names, sorted bytewise, each once.
///
/// Between slashes, `*` stands for any bytes, `?` for one, `[a-c]` for one of those, `[!a-c]` for
/// one of the others; a backslash makes the next byte an ordinary one. `**` between slashes stands
/// for any number of folders, none too; at the end, for all files below. No wildcard stands for a
/// leading dot. Folders, pipes and devices are no files. Links are followed where the pattern names
/// them, but `**` goes into no linked folder, as in bash: so loops of links end, and no file is
/// found by two names.
///
/// Blocks for as long as the file system does. `not_found`: no file has such a name (the message
/// has the nearest folder that exists), or one that has is a link to nothing. `invalid`: an empty
/// pattern, a folder without a wildcard, a folder that must not be read.
Result<std::vector<std::string>> files_matching(const std::string& pattern);

}  // namespace batchloom::sources
