// SPDX-License-Identifier: Apache-2.0
// A temporary file with and without a name, and how a sweeper can tell dead ones.
//
//  1. A file that has a temporary name is under its writer's flock. The kernel drops the lock when
//     the writer's last descriptor of the file is gone, so also when the writer is killed.
//  2. A sweeper removes a temporary name only while it holds that file's flock.
//  3. Between making a name and locking it, a sweeper may have come by. The writer then fails to
//     get the lock, or finds that its file has no name any more (no link), and takes a new name.
//     Names are random and never used twice.
#include "batchloom/objstore/posix_temp_file.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "batchloom/base/check.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::objstore {
namespace {

constexpr std::size_t kMaxPartsPerWrite = 1024;  // IOV_MAX of Linux.

std::string random_name(const std::string& folder) {
  std::array<std::uint64_t, 2> bits{};
  BL_CHECK(getrandom(bits.data(), sizeof(bits), 0) == sizeof(bits),
           "the kernel gave no randomness");
  return fmt::format("{}/{:016x}{:016x}", folder, bits[0], bits[1]);
}

class PosixTempFile final : public TempFile {
 public:
  /// `temp_name` is empty for a file without a name; it must be under its flock otherwise.
  PosixTempFile(Fd fd, std::string temp_folder, std::string temp_name)
      : fd_(std::move(fd)),
        temp_folder_(std::move(temp_folder)),
        temp_name_(std::move(temp_name)) {}

  ~PosixTempFile() override {
    if (!temp_name_.empty()) unlink(temp_name_.c_str());  // Else a sweeper finds it.
  }

  Status write(std::span<const ByteSpan> parts) override {
    std::vector<iovec> rest;
    for (const ByteSpan part : parts) {
      if (!part.empty()) rest.push_back({const_cast<std::byte*>(part.data()), part.size()});
    }
    std::size_t first = 0;
    while (first < rest.size()) {
      const int count = static_cast<int>(std::min(rest.size() - first, kMaxPartsPerWrite));
      const ssize_t written =
          retry_interrupted([&] { return writev(fd_.get(), &rest[first], count); });
      if (written < 0) return file_error(errno, "write a file in", temp_folder_);
      if (written == 0) return file_error(EIO, "write a file in", temp_folder_);
      first = skip(rest, first, static_cast<std::size_t>(written));
    }
    return Status::ok();
  }

  Status sync_data() override {
    // Not repeated, not even when interrupted: a second call may succeed without having written.
    if (fdatasync(fd_.get()) != 0) return file_error(errno, "sync a file in", temp_folder_);
    return Status::ok();
  }

  Result<bool> link(const std::string& path) override {
    const int error = temp_name_.empty() ? link_unnamed(path) : link_named(path);
    if (error == EEXIST) return false;
    if (error != 0) return file_error(error, "link", path);
    return true;
  }

  Status replace(const std::string& path) override {
    if (temp_name_.empty()) BL_RETURN_IF_ERROR(take_temp_name());
    if (renameat(AT_FDCWD, temp_name_.c_str(), AT_FDCWD, path.c_str()) != 0) {
      if (errno == EISDIR) return not_a_file(path, "a folder");
      return file_error(errno, "rename a new file to", path);
    }
    temp_name_.clear();
    return Status::ok();
  }

 private:
  /// Drops `written` bytes from the front of `rest[first..]`; the new first.
  static std::size_t skip(std::vector<iovec>& rest, std::size_t first, std::size_t written) {
    while (written > 0) {
      iovec& part = rest[first];
      const std::size_t taken = std::min(written, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      written -= taken;
      if (part.iov_len == 0) ++first;
    }
    return first;
  }

  int link_unnamed(const std::string& path) const {
    // Through /proc, because AT_EMPTY_PATH wants a privilege on kernels before 6.10.
    const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                          : errno;
  }

  int link_named(const std::string& path) const {
    return linkat(AT_FDCWD, temp_name_.c_str(), AT_FDCWD, path.c_str(), 0) == 0 ? 0 : errno;
  }

  /// rename(2) needs a name to start from.
  Status take_temp_name() {
    if (!fd_.try_flock()) return file_error(errno, "lock a file in", temp_folder_);
    std::string name = random_name(temp_folder_);
    if (const int error = link_unnamed(name); error != 0) return file_error(error, "link", name);
    temp_name_ = std::move(name);
    return Status::ok();
  }

  Fd fd_;
  std::string temp_folder_;
  std::string temp_name_;
};

}  // namespace

namespace {

/// A file without a name; errno says why it is not open. Of a folder that is removed while its name
/// is followed ext4 says EPERM, which becomes ENOENT: else one would look for permissions.
Fd open_unnamed(const std::string& temp_folder) {
  constexpr int kFlags = O_TMPFILE | O_RDWR;
  Fd fd = Fd::open(temp_folder, kFlags);
  if (fd.is_open() || errno != EPERM) return fd;
  // Another folder may have the name by now: look at one and the same.
  const Fd folder = Fd::open(temp_folder, O_PATH | O_DIRECTORY);
  if (!folder.is_open()) return fd;
  Fd again = Fd::open(fmt::format("/proc/self/fd/{}", folder.get()), kFlags);
  if (again.is_open() || errno != EPERM) return again;
  struct stat info = {};
  errno = fstat(folder.get(), &info) == 0 && info.st_nlink == 0 ? ENOENT : EPERM;
  return again;
}

}  // namespace

Result<std::unique_ptr<TempFile>> open_unnamed_temp(const std::string& temp_folder) {
  Fd fd = open_unnamed(temp_folder);
  if (!fd.is_open()) {
    // A kernel or a file system without O_TMPFILE says one of these; EISDIR for a kernel that takes
    // it for O_DIRECTORY.
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) {
      return std::unique_ptr<TempFile>();
    }
    return file_error(errno, "open a file in", temp_folder);
  }
  return std::unique_ptr<TempFile>(
      std::make_unique<PosixTempFile>(std::move(fd), temp_folder, std::string()));
}

Result<std::unique_ptr<TempFile>> open_named_temp(const std::string& temp_folder) {
  for (;;) {
    std::string name = random_name(temp_folder);
    Fd fd = Fd::open(name, O_RDWR | O_CREAT | O_EXCL);
    if (!fd.is_open()) return file_error(errno, "open a file in", temp_folder);
    const bool locked = fd.try_flock();
    if (!locked && errno != EWOULDBLOCK) {
      const int error = errno;
      unlink(name.c_str());
      return file_error(error, "lock", name);
    }
    struct stat info = {};
    if (fstat(fd.get(), &info) != 0) return file_error(errno, "look at", name);
    if (!locked || info.st_nlink == 0) continue;  // A sweeper was faster.
    return std::unique_ptr<TempFile>(
        std::make_unique<PosixTempFile>(std::move(fd), temp_folder, std::move(name)));
  }
}

}  // namespace batchloom::objstore
