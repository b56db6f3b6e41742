// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/glob.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <locale.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "batchloom/objstore/file_ops.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAnyFolders = "**";

bool has_wildcard(std::string_view segment) {
  return segment.find_first_of("*?[\\") != std::string_view::npos;
}

/// For its lifetime, fnmatch(3) of this thread compares bytes, whatever the host program has set.
class ByteLocale {
 public:
  ByteLocale() : bytes_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(bytes_)) {}
  ~ByteLocale() {
    uselocale(before_);
    freelocale(bytes_);
  }
  ByteLocale(const ByteLocale&) = delete;
  ByteLocale& operator=(const ByteLocale&) = delete;

 private:
  locale_t bytes_;
  locale_t before_;
};

/// The names between slashes; two of `**` in a row say what one says.
std::vector<std::string> segments_of(std::string_view pattern) {
  std::vector<std::string> segments;
  while (!pattern.empty()) {
    const std::size_t size = std::min(pattern.find('/'), pattern.size());
    const std::string_view segment = pattern.substr(0, size);
    const bool repeated =
        segment == kAnyFolders && !segments.empty() && segments.back() == kAnyFolders;
    if (size > 0 && !repeated) segments.emplace_back(segment);
    pattern.remove_prefix(std::min(size + 1, pattern.size()));
  }
  return segments;
}

/// "a" for a folder of "", "a/b", "/b".
std::string path_in(const std::string& folder, std::string_view name) {
  if (folder.empty() || folder.ends_with('/')) return folder + std::string(name);
  return fmt::format("{}/{}", folder, name);
}

/// A failure of the file system. The error numbers of std::error_code are those of errno.
Status glob_error(const std::error_code& error, std::string_view operation,
                  const std::string& path) {
  return objstore::file_error(error.value(), operation, path);
}

class GlobSearch {
 public:
  explicit GlobSearch(std::string_view pattern)
      : segments_(segments_of(pattern)), root_(pattern.starts_with('/') ? "/" : "") {}

  Result<std::vector<std::string>> run() {
    BL_RETURN_IF_ERROR(look_in(root_, 0));
    std::ranges::sort(found_);
    const auto repeated = std::ranges::unique(found_);
    found_.erase(repeated.begin(), repeated.end());
    return std::move(found_);
  }

  /// The last folder on the way to the first wildcard, or to what is missing.
  std::string nearest_folder() const {
    std::string nearest = root_.empty() ? "." : root_;
    std::string path = root_;
    for (const std::string& segment : segments_) {
      path = path_in(path, segment);
      std::error_code error;
      if (has_wildcard(segment) || !fs::is_directory(path, error)) break;
      nearest = path;
    }
    return nearest;
  }

 private:
  /// `path` is the folder for the segments from number `segment` on, or nothing of that name.
  Status look_in(const std::string& path, std::size_t segment) {
    const std::string& pattern = segments_[segment];
    const bool last = segment + 1 == segments_.size();
    if (pattern == kAnyFolders) return look_below(path, segment);
    if (has_wildcard(pattern)) {
      return for_each_entry(path, [&](const fs::directory_entry& entry, const std::string& name) {
        if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) != 0) return Status::ok();
        const std::string inner = path_in(path, name);
        return last ? add_if_file(entry, inner) : look_in_if_folder(entry, inner, segment + 1);
      });
    }
    const std::string inner = path_in(path, pattern);
    std::error_code error;
    const fs::directory_entry entry(inner, error);
    if (error && error != std::errc::no_such_file_or_directory &&
        error != std::errc::not_a_directory) {
      return glob_error(error, "look at", inner);
    }
    return last ? add_if_file(entry, inner) : look_in_if_folder(entry, inner, segment + 1);
  }

  /// `path` and all folders below it, but for those that a link leads to.
  Status look_below(const std::string& path, std::size_t segment) {
    const bool last = segment + 1 == segments_.size();
    if (!last) BL_RETURN_IF_ERROR(look_in(path, segment + 1));
    return for_each_entry(path, [&](const fs::directory_entry& entry, const std::string& name) {
      if (name.starts_with('.')) return Status::ok();
      const std::string inner = path_in(path, name);
      std::error_code error;
      const bool linked = entry.is_symlink(error);
      if (!linked && entry.is_directory(error)) return look_below(inner, segment);
      return last ? add_if_file(entry, inner) : Status::ok();
    });
  }

  template <class Visit>
  static Status for_each_entry(const std::string& path, const Visit& visit) {
    std::error_code error;
    for (fs::directory_iterator entries(path.empty() ? "." : path, error);
         !error && entries != fs::directory_iterator(); entries.increment(error)) {
      BL_RETURN_IF_ERROR(visit(*entries, entries->path().filename().string()));
    }
    return error ? glob_error(error, "list the folder", path) : Status::ok();
  }

  Status look_in_if_folder(const fs::directory_entry& entry, const std::string& path,
                           std::size_t segment) {
    std::error_code error;
    if (!entry.is_directory(error)) return Status::ok();
    return look_in(path, segment);
  }

  Status add_if_file(const fs::directory_entry& entry, const std::string& path) {
    std::error_code error;
    if (entry.is_regular_file(error)) {
      found_.push_back(path);
      return Status::ok();
    }
    if (!entry.is_symlink(error) || fs::exists(path, error)) return Status::ok();
    return Status::not_found(
        fmt::format("{}: a link to nothing; remove it, or repair what it leads to", path));
  }

  std::vector<std::string> segments_;
  std::string root_;
  std::vector<std::string> found_;
};

Status no_file(const std::string& pattern, const std::string& nearest) {
  std::error_code error;
  if (!has_wildcard(pattern) && fs::is_directory(pattern, error)) {
    return Status::invalid(
        fmt::format("{}: a folder; name its files, as {}", pattern, path_in(pattern, "*")));
  }
  return Status::not_found(fmt::format(
      "{}: no plain file has such a name; the nearest folder that exists is {}", pattern, nearest));
}

}  // namespace

Result<std::vector<std::string>> files_matching(const std::string& pattern) {
  GlobSearch search(pattern);
  if (segments_of(pattern).empty()) return Status::invalid("a pattern of files is empty");
  const ByteLocale locale;
  BL_ASSIGN_OR_RETURN(std::vector<std::string> files, search.run());
  if (files.empty()) return no_file(pattern, search.nearest_folder());
  return files;
}

}  // namespace batchloom::sources
