// SPDX-License-Identifier: Apache-2.0
#include "cli/expand_files.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace batchloom::cli {
namespace {

bool is_folder(const char* path) {
  struct stat about{};
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

Result<std::vector<std::string>> expand_files(const std::string& pattern) {
  if (pattern.find("://") != std::string::npos) {
    return Status::invalid(
        fmt::format("{}: only local paths are read; s3:// is not built yet", pattern));
  }
  glob_t found{};
  const int code = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> freed(&found, &globfree);
  std::vector<std::string> files;
  if (code == GLOB_NOMATCH) return files;
  if (code != 0) {
    return Status::unavailable(
        fmt::format("{}: a folder cannot be read: {}", pattern, std::strerror(errno)));
  }
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    if (!is_folder(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  }
  return files;
}

}  // namespace batchloom::cli
