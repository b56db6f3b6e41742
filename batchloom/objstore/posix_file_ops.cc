// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/posix_file_ops.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "batchloom/objstore/posix_fd.h"
#include "batchloom/objstore/posix_temp_file.h"

namespace batchloom::objstore {
namespace {

bool is_missing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

class PosixReadFile final : public ReadFile {
 public:
  PosixReadFile(Fd fd, std::string path, std::uint64_t size_bytes)
      : fd_(std::move(fd)), path_(std::move(path)), size_bytes_(size_bytes) {}

  Result<std::uint64_t> size_bytes() override { return size_bytes_; }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = retry_interrupted([&] {
        return pread(fd_.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
      });
      if (got < 0) return file_error(errno, "read", path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  Fd fd_;
  std::string path_;
  std::uint64_t size_bytes_;
};

class PosixFolder final : public Folder {
 public:
  PosixFolder(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  ~PosixFolder() override {
    if (stream_ != nullptr) closedir(stream_);
  }

  Status sync() override {
    // Not repeated, not even when interrupted: a second call may succeed without having written.
    const int fd = stream_ != nullptr ? dirfd(stream_) : fd_.get();
    if (fsync(fd) != 0) return file_error(errno, "sync the folder", path_);
    return Status::ok();
  }

  Result<std::optional<FolderEntry>> next() override {
    if (stream_ == nullptr) {
      stream_ = fdopendir(fd_.get());
      if (stream_ == nullptr) return file_error(errno, "list", path_);
      fd_.release();  // The stream owns it now.
    }
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(stream_);
      if (entry == nullptr) {
        if (errno != 0) return file_error(errno, "list", path_);
        return std::optional<FolderEntry>();
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      return std::optional(FolderEntry{std::string(name), kind_of(*entry)});
    }
  }

 private:
  EntryKind kind_of(const dirent& entry) const {
    if (entry.d_type == DT_REG) return EntryKind::kFile;
    if (entry.d_type == DT_DIR) return EntryKind::kFolder;
    if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return EntryKind::kOther;
    // A link may lead to a folder; and some file systems do not say what a folder holds.
    struct stat info = {};
    if (fstatat(dirfd(stream_), entry.d_name, &info, 0) != 0) return EntryKind::kOther;
    if (S_ISDIR(info.st_mode)) return EntryKind::kFolder;
    if (fstatat(dirfd(stream_), entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return EntryKind::kOther;
    }
    return S_ISREG(info.st_mode) ? EntryKind::kFile : EntryKind::kOther;
  }

  Fd fd_;
  std::string path_;
  DIR* stream_ = nullptr;  // Made by the first next().
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(Fd fd) : fd_(std::move(fd)) {}
  /// Unlocks before closing: a child that was forked meanwhile still has the descriptor.
  ~PosixLock() override { flock(fd_.get(), LOCK_UN); }

 private:
  Fd fd_;
};

std::string_view name_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a pipe";
    case S_IFLNK: return "a link";
    case S_IFSOCK: return "a socket";
    default: return "a device";
  }
}

/// The size of the file that `info` describes, or why it is none.
Result<std::uint64_t> regular_size(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) return not_a_file(path, name_of(info.st_mode));
  return static_cast<std::uint64_t>(info.st_size);
}

/// Why `path` could not be opened for reading: open(2) says of a link and of a socket only that it
/// does not go.
Status open_error(int error, const std::string& path) {
  struct stat info = {};
  if ((error == ELOOP || error == ENXIO) && lstat(path.c_str(), &info) == 0) {
    BL_RETURN_IF_ERROR(regular_size(info, path).status());
  }
  return file_error(error, "open", path);
}

class PosixFileOps final : public FileOps {
 public:
  explicit PosixFileOps(bool unnamed_temp_files) : unnamed_temp_files_(unnamed_temp_files) {}

  Result<std::unique_ptr<TempFile>> open_temp(const std::string& temp_folder) override {
    if (unnamed_temp_files_.load(std::memory_order_relaxed)) {
      BL_ASSIGN_OR_RETURN(std::unique_ptr<TempFile> file, open_unnamed_temp(temp_folder));
      if (file != nullptr) return file;
      unnamed_temp_files_.store(false, std::memory_order_relaxed);
    }
    return open_named_temp(temp_folder);
  }

  Result<std::unique_ptr<ReadFile>> open_read(const std::string& path) override {
    // Without O_NONBLOCK a stray pipe of that name would block for ever.
    Fd fd = Fd::open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!fd.is_open()) {
      if (is_missing(errno)) return std::unique_ptr<ReadFile>();
      return open_error(errno, path);
    }
    struct stat info = {};
    if (fstat(fd.get(), &info) != 0) return file_error(errno, "look at", path);
    BL_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, regular_size(info, path));
    return std::unique_ptr<ReadFile>(
        std::make_unique<PosixReadFile>(std::move(fd), path, size_bytes));
  }

  Result<std::unique_ptr<Folder>> open_folder(const std::string& path) override {
    Fd fd = Fd::open(path, O_RDONLY | O_DIRECTORY);
    if (!fd.is_open()) {
      if (is_missing(errno)) return std::unique_ptr<Folder>();
      return file_error(errno, "open the folder", path);
    }
    return std::unique_ptr<Folder>(std::make_unique<PosixFolder>(std::move(fd), path));
  }

  Result<std::optional<std::uint64_t>> file_size(const std::string& path) override {
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) {
      if (is_missing(errno)) return std::optional<std::uint64_t>();
      return file_error(errno, "look at", path);
    }
    BL_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, regular_size(info, path));
    return std::optional(size_bytes);
  }

  Result<bool> unlink(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return true;
    if (is_missing(errno)) return false;
    if (errno == EISDIR) return not_a_file(path, "a folder");
    return file_error(errno, "remove", path);
  }

  Result<bool> make_folder(const std::string& path) override {
    if (mkdir(path.c_str(), 0777) == 0) return true;
    if (errno == EEXIST) return false;
    return file_error(errno, "make the folder", path);
  }

  Result<bool> remove_folder(const std::string& path) override {
    if (rmdir(path.c_str()) == 0) return true;
    if (is_missing(errno) || errno == ENOTEMPTY || errno == EEXIST) return false;
    return file_error(errno, "remove the folder", path);
  }

  Result<std::unique_ptr<FileLock>> try_lock(const std::string& path) override {
    Fd fd = Fd::open(path, O_RDWR | O_CREAT);
    if (!fd.is_open()) return file_error(errno, "open the lock", path);
    if (!fd.try_flock()) {
      if (errno == EWOULDBLOCK) return std::unique_ptr<FileLock>();
      return file_error(errno, "lock", path);
    }
    return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(fd)));
  }

  Result<bool> sweep_temp(const std::string& path) override {
    const Fd fd = Fd::open(path, O_RDWR | O_NONBLOCK);
    if (!fd.is_open()) {
      if (is_missing(errno)) return false;
      return file_error(errno, "open", path);
    }
    if (!fd.try_flock()) {
      if (errno == EWOULDBLOCK) return false;
      return file_error(errno, "lock", path);
    }
    return unlink(path);
  }

 private:
  std::atomic<bool> unnamed_temp_files_;
};

}  // namespace

std::unique_ptr<FileOps> make_posix_file_ops(const PosixFileOptions& options) {
  // A file without a name gets one through /proc, which a small container may lack.
  const bool unnamed = options.unnamed_temp_files && access("/proc/self/fd", X_OK) == 0;
  return std::make_unique<PosixFileOps>(unnamed);
}

}  // namespace batchloom::objstore
