// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "batchloom/base/status.h"

namespace batchloom::cli {

/// Whether write_file() could write there now, or, of a folder, make_folder() and then write_file()
/// in it: for what takes long before. Changes nothing. Errors: those of file_ops.h.
Status check_file_target(const std::string& path);
Status check_folder_target(const std::string& path);

/// Writes a file that a command was asked for, in place of one that was there. Errors: those of
/// file_ops.h; a part of it may then be there.
Status write_file(const std::string& path, std::string_view content);

/// Makes the folder where it is missing (not those above it). Errors: those of file_ops.h.
Status make_folder(const std::string& path);

}  // namespace batchloom::cli
