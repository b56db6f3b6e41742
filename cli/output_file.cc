// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {

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
