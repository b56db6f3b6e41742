// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/file_pool.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/posix_fd.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

/// A stop token is looked at after so many bytes.
constexpr std::size_t kReadStretchBytes = std::size_t{8} << 20;

/// Ok where the open file still has `stamp`.
Status check_open_file(const std::string& path, const FileStamp& stamp, int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return objstore::file_error(errno, "look at", path);
  BL_ASSIGN_OR_RETURN(const FileStamp now, stamp_of(path, info));
  return check_unchanged(path, stamp, now);
}

Result<objstore::Fd> open_stamped(const std::string& path, const FileStamp& stamp) {
  // Without O_NONBLOCK a pipe that took the file's name would block until somebody writes.
  objstore::Fd file = objstore::Fd::open(path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) {
    if (errno == ENOENT) {
      return Status::not_found(
          fmt::format("{}: there is no such file: it went away during this run; restore it", path));
    }
    return objstore::file_error(errno, "open", path);
  }
  BL_RETURN_IF_ERROR(check_open_file(path, stamp, file.get()));
  return file;
}

/// Half of what the process may have open; others need some, too.
std::size_t fair_share_of_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur / 2);
}

/// Precondition: the range lies within the file as its stamp has it.
Status read_range(const std::string& path, int fd, std::uint64_t offset, std::span<std::byte> out,
                  const CallOptions& call) {
  while (!out.empty()) {
    if (call.stop.stop_requested()) {
      return Status::cancelled(fmt::format("{}: reading was stopped", path));
    }
    const ssize_t count = objstore::retry_interrupted([&] {
      return pread(fd, out.data(), std::min(out.size(), kReadStretchBytes),
                   static_cast<off_t>(offset));
    });
    if (count < 0) return objstore::file_error(errno, "read", path);
    if (count == 0) {
      return Status::unavailable(
          fmt::format("read {}: nothing came at offset {}, before the file's end; check the disk",
                      path, offset));
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return Status::ok();
}

}  // namespace

/// What the pool knows of a file is guarded by the pool's mutex.
class FilePool::PooledFile final : public ByteReader {
 public:
  PooledFile(FilePool& owner, std::string path, const FileStamp& stamp)
      : pool_(owner), path_(std::move(path)), stamp_(stamp) {}
  ~PooledFile() override { pool_.forget(*this); }

  std::string_view name() const override { return path_; }
  std::uint64_t size_bytes() const override { return stamp_.size_bytes; }
  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override;
  Status read_all(std::span<const ReadStretch> stretches, const CallOptions& call) override;

 private:
  friend class FilePool;

  Status check_range(const ReadStretch& stretch) const;
  Status read_open(std::span<const ReadStretch> stretches, const CallOptions& call) const;

  FilePool& pool_;
  const std::string path_;
  const FileStamp stamp_;

  int fd_ = -1;  ///< Does not change while there are uses.
  bool opening_ = false;
  std::size_t uses_ = 0;
  std::list<PooledFile*>::iterator place_ = {};  ///< Where it is idle.
};

Status FilePool::PooledFile::read_at(std::uint64_t offset, std::span<std::byte> out,
                                     const CallOptions& call) {
  const ReadStretch stretch{offset, out};
  return read_all(std::span(&stretch, 1), call);
}

Status FilePool::PooledFile::check_range(const ReadStretch& stretch) const {
  const std::uint64_t size = stretch.out.size();
  if (stretch.offset <= stamp_.size_bytes && size <= stamp_.size_bytes - stretch.offset) {
    return Status::ok();
  }
  return shard_fault(
      path_, stamp_.size_bytes,
      fmt::format("the file ends here; {} bytes were expected at offset {}", size, stretch.offset));
}

Status FilePool::PooledFile::read_all(std::span<const ReadStretch> stretches,
                                      const CallOptions& call) {
  for (const ReadStretch& stretch : stretches) BL_RETURN_IF_ERROR(check_range(stretch));
  const auto is_empty = [](const ReadStretch& stretch) { return stretch.out.empty(); };
  if (std::ranges::all_of(stretches, is_empty)) return Status::ok();
  const FileCalls::Mark mark(pool_.calls_, FileCallStage::kRead, path_);
  BL_RETURN_IF_ERROR(pool_.begin_use(*this, call));
  const Status read = read_open(stretches, call);
  pool_.end_use(*this, read.is_ok() || read.is(ErrorKind::kCancelled));
  return read;
}

Status FilePool::PooledFile::read_open(std::span<const ReadStretch> stretches,
                                       const CallOptions& call) const {
  Status read;
  for (const ReadStretch& stretch : stretches) {
    read = read_range(path_, fd_, stretch.offset, stretch.out, call);
    if (!read.is_ok()) break;
  }
  if (read.is(ErrorKind::kCancelled)) return read;
  // Also after an error: that the file has shrunk explains it.
  BL_RETURN_IF_ERROR(check_open_file(path_, stamp_, fd_));
  return read;
}

FilePool::FilePool(Runtime& runtime, const FilePoolOptions& options)
    : runtime_(runtime),
      max_open_(std::max<std::size_t>(std::min(options.max_open, fair_share_of_limit()), 1)),
      calls_(options.calls) {}

FilePool::~FilePool() {
  const MutexLock lock(mutex_);
  BL_CHECK(readers_ == 0, "a reader outlives its pool");
}

Result<std::unique_ptr<ByteReader>> FilePool::open(const std::string& path) {
  BL_ASSIGN_OR_RETURN(const FileStamp stamp, stamp_of(path));
  return reader(path, stamp);
}

std::unique_ptr<ByteReader> FilePool::reader(std::string path, const FileStamp& stamp) {
  auto file = std::make_unique<PooledFile>(*this, std::move(path), stamp);
  const MutexLock lock(mutex_);
  ++readers_;
  return file;
}

std::size_t FilePool::open_files() const {
  const MutexLock lock(mutex_);
  return open_;
}

FilePool::Turn FilePool::take_turn(PooledFile& file, int& to_close) {
  if (file.opening_) return Turn::kWait;
  if (file.fd_ >= 0) {
    if (file.uses_++ == 0) idle_.erase(file.place_);
    return Turn::kUse;
  }
  if (open_ < max_open_) {
    ++open_;
  } else if (!idle_.empty()) {
    to_close = std::exchange(idle_.front()->fd_, -1);
    idle_.pop_front();
  } else {
    return Turn::kWait;
  }
  file.opening_ = true;
  return Turn::kOpen;
}

Status FilePool::begin_use(PooledFile& file, const CallOptions& call) {
  std::shared_ptr<Event> wake;  // Made where it is needed, which is seldom.
  for (;;) {
    int to_close = -1;
    Turn turn = Turn::kWait;
    {
      const MutexLock lock(mutex_);
      turn = take_turn(file, to_close);
      if (turn == Turn::kWait && wake != nullptr) waiting_.push_back(wake);
    }
    if (turn == Turn::kUse) return Status::ok();
    if (turn == Turn::kOpen) {
      if (to_close >= 0) close(to_close);
      return open_file(file);
    }
    if (wake == nullptr) {
      wake = runtime_.make_event();
      continue;
    }
    if (const Status waited = wake->wait(call); !waited.is_ok()) {
      const MutexLock lock(mutex_);
      std::erase(waiting_, wake);
      return waited.with_context(fmt::format(
          "{}: waiting for one of the {} files that may be open at a time", file.path_, max_open_));
    }
    wake->reset();
  }
}

Status FilePool::open_file(PooledFile& file) {
  Result<objstore::Fd> opened = open_stamped(file.path_, file.stamp_);
  {
    const MutexLock lock(mutex_);
    file.opening_ = false;
    if (opened.is_ok()) {
      file.fd_ = opened->release();
      file.uses_ = 1;
    } else {
      --open_;
    }
  }
  wake_all();
  return opened.status();
}

void FilePool::end_use(PooledFile& file, bool keep_open) {
  int to_close = -1;
  {
    const MutexLock lock(mutex_);
    if (--file.uses_ > 0) return;
    if (keep_open) {
      file.place_ = idle_.insert(idle_.end(), &file);
    } else {
      to_close = std::exchange(file.fd_, -1);
    }
  }
  if (to_close >= 0) return close_file(to_close);
  wake_all();
}

void FilePool::forget(PooledFile& file) {
  int to_close = -1;
  {
    const MutexLock lock(mutex_);
    BL_CHECK(file.uses_ == 0 && !file.opening_, "a reader ends while it reads");
    --readers_;
    if (file.fd_ >= 0) {
      idle_.erase(file.place_);
      to_close = std::exchange(file.fd_, -1);
    }
  }
  if (to_close >= 0) close_file(to_close);
}

void FilePool::close_file(int fd) {
  close(fd);
  {
    const MutexLock lock(mutex_);
    --open_;
  }
  wake_all();
}

void FilePool::wake_all() {
  std::vector<std::shared_ptr<Event>> woken;
  {
    const MutexLock lock(mutex_);
    woken.swap(waiting_);
  }
  for (const auto& wake : woken) wake->set();
}

}  // namespace batchloom::sources
