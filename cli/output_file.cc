// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {
namespace {

/// Where a name stands that is not there yet.
std::string folder_of(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

/// errno says why not.
bool is_allowed(const std::string& path, int mode) {
  return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

/// `is_folder`: whether one is wanted. Not there: whether it could be made.
Status check_target(const std::string& path, bool is_folder, std::string_view operation) {
  struct stat about{};
  if (stat(path.c_str(), &about) != 0) {
    if (errno != ENOENT) return objstore::file_error(errno, operation, path);
    if (!is_folder && path.ends_with('/')) return objstore::file_error(EISDIR, operation, path);
    return is_allowed(folder_of(path), W_OK | X_OK) ? Status::ok()
                                                    : objstore::file_error(errno, operation, path);
  }
  if (is_folder != S_ISDIR(about.st_mode)) {
    return objstore::file_error(is_folder ? ENOTDIR : EISDIR, operation, path);
  }
  if (is_allowed(path, is_folder ? W_OK | X_OK : W_OK)) return Status::ok();
  return objstore::file_error(errno, operation, path);
}

}  // namespace

Status check_file_target(const std::string& path) {
  return check_target(path, false, "open");
}

Status check_folder_target(const std::string& path) {
  return check_target(path, true, "make the folder");
}

Status write_file(const std::string& path, std::string_view content) {
  const objstore::Fd file = objstore::Fd::open(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open()) return objstore::file_error(errno, "open", path);
  while (!content.empty()) {
    const ssize_t written = objstore::retry_interrupted(
        [&] { return write(file.get(), content.data(), content.size()); });
    if (written < 0) return objstore::file_error(errno, "write", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::ok();
}

Status make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return Status::ok();
  struct stat about{};
  const int error = errno;
  if (error == EEXIST && stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    return Status::ok();
  }
  return objstore::file_error(error == EEXIST ? ENOTDIR : error, "make the folder", path);
}

}  // namespace batchloom::cli
