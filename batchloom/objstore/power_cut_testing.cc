// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/power_cut_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace batchloom::objstore {
namespace {

Status error_of(int error, FileCall kind, const std::string& path) {
  return file_error(error, operation_of(kind), path);
}

bool changes_names(FileCall kind) {
  return kind == FileCall::kLink || kind == FileCall::kReplace || kind == FileCall::kUnlink ||
         kind == FileCall::kMakeFolder;
}

}  // namespace

template <class T, class Body>
Result<T> PowerCutFileOps::run(FileCall kind, const std::string& path, Body body) {
  const FileFault fault = faults_.meet(kind, path);
  const MutexLock lock(mutex_);
  if (fault.error == 0) return body(disk_);
  if (fault.takes_effect && changes_names(kind)) static_cast<void>(body(disk_));
  return error_of(fault.error, kind, path);
}

template <class T, class Body>
Result<T> PowerCutFileOps::run(FileCall kind, const std::string& path, const Handle& handle,
                               Body body) {
  return handle.owner.run<T>(kind, path, [&](FakeDisk& disk) -> Result<T> {
    if (handle.power_cuts != disk.power_cuts()) return error_of(EIO, kind, path);
    return body(disk);
  });
}

Status PowerCutFileOps::run_sync(FileCall kind, const Handle& handle) {
  PowerCutFileOps& owner = handle.owner;
  const FileFault fault = owner.faults_.meet(kind, handle.path);
  const MutexLock lock(owner.mutex_);
  const bool stale = handle.power_cuts != owner.disk_.power_cuts();
  const int error = stale ? EIO : fault.error;
  if (kind == FileCall::kSyncData) {
    owner.disk_.sync_bytes(*handle.node, error != 0);
  } else if (!stale) {
    owner.disk_.sync_names(*handle.node, error != 0);
  }
  return error == 0 ? Status::ok() : error_of(error, kind, handle.path);
}

void PowerCutFileOps::end(const Handle& handle, bool remove_name) {
  PowerCutFileOps& owner = handle.owner;
  if (owner.faults_.is_off()) return;
  const MutexLock lock(owner.mutex_);
  if (handle.power_cuts != owner.disk_.power_cuts()) return;
  handle.node->is_locked = false;
  FakeDisk::Spot spot;
  if (!remove_name || owner.disk_.locate(handle.path, spot) != 0) return;
  owner.disk_.set_name(spot, nullptr);
}

void PowerCutFileOps::power_cut(std::uint64_t seed) {
  {
    const MutexLock lock(mutex_);
    disk_.power_cut(seed);
  }
  faults_.power_on();
}

class PowerCutFileOps::FakeTempFile final : public TempFile {
 public:
  explicit FakeTempFile(Handle handle) : handle_(std::move(handle)) {}
  ~FakeTempFile() override { end(handle_, has_temp_name_); }

  Status write(std::span<const ByteSpan> parts) override {
    const auto append = [&](FakeDisk&) -> Result<bool> {
      Bytes& bytes = handle_.node->bytes;
      for (const ByteSpan part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
      handle_.node->bytes_durable = false;
      return true;
    };
    return run<bool>(FileCall::kWrite, handle_.path, handle_, append).status();
  }

  Status sync_data() override { return run_sync(FileCall::kSyncData, handle_); }

  Result<bool> link(const std::string& path) override {
    return run<bool>(FileCall::kLink, path, handle_, [&](FakeDisk& disk) -> Result<bool> {
      FakeDisk::Spot spot;
      const int error = disk.locate(path, spot);
      if (error != 0) return error_of(error, FileCall::kLink, path);
      if (disk.find(path) != nullptr) return false;
      disk.set_name(spot, handle_.node);
      return true;
    });
  }

  Status replace(const std::string& path) override {
    const auto rename = [&](FakeDisk& disk) -> Result<bool> {
      FakeDisk::Spot to;
      const int error = disk.locate(path, to);
      const DiskNodePtr there = disk.find(path);
      if (error == 0 && there != nullptr && there->is_folder) return not_a_file(path, "a folder");
      if (error != 0) return error_of(error, FileCall::kReplace, path);
      FakeDisk::Spot from;
      if (disk.locate(handle_.path, from) == 0) disk.set_name(from, nullptr);
      disk.set_name(to, handle_.node);
      has_temp_name_ = false;
      return true;
    };
    return run<bool>(FileCall::kReplace, path, handle_, rename).status();
  }

 private:
  const Handle handle_;  // Its path is the temporary name.
  bool has_temp_name_ = true;
};

class PowerCutFileOps::FakeReadFile final : public ReadFile {
 public:
  explicit FakeReadFile(Handle handle) : handle_(std::move(handle)) {}

  Result<std::uint64_t> size_bytes() override {
    const auto size = [&](FakeDisk&) -> Result<std::uint64_t> {
      return handle_.node->bytes.size();
    };
    return run<std::uint64_t>(FileCall::kSizeOfOpen, handle_.path, handle_, size);
  }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    const auto copy = [&](FakeDisk&) -> Result<std::size_t> {
      const ByteSpan bytes = handle_.node->bytes;
      if (offset >= bytes.size()) return std::size_t{0};
      const ByteSpan part = bytes.subspan(offset, std::min(out.size(), bytes.size() - offset));
      std::copy(part.begin(), part.end(), out.begin());
      return part.size();
    };
    return run<std::size_t>(FileCall::kRead, handle_.path, handle_, copy);
  }

 private:
  const Handle handle_;
};

class PowerCutFileOps::FakeFolder final : public Folder {
 public:
  explicit FakeFolder(Handle handle) : handle_(std::move(handle)) {}

  Status sync() override { return run_sync(FileCall::kSyncFolder, handle_); }

  Result<std::optional<FolderEntry>> next() override {
    using Entry = std::optional<FolderEntry>;
    return run<Entry>(FileCall::kNextEntry, handle_.path, handle_, [&](FakeDisk&) -> Result<Entry> {
      const auto found = handle_.node->names.upper_bound(last_name_);
      if (found == handle_.node->names.end()) return Entry();
      last_name_ = found->first;
      const EntryKind kind = found->second->is_folder ? EntryKind::kFolder : EntryKind::kFile;
      return Entry({.name = last_name_, .kind = kind});
    });
  }

 private:
  const Handle handle_;
  std::string last_name_;
};

class PowerCutFileOps::FakeLock final : public FileLock {
 public:
  explicit FakeLock(Handle handle) : handle_(std::move(handle)) {}
  ~FakeLock() override { end(handle_, false); }

 private:
  const Handle handle_;
};

Result<std::unique_ptr<TempFile>> PowerCutFileOps::open_temp(const std::string& temp_folder) {
  using Opened = std::unique_ptr<TempFile>;
  return run<Opened>(FileCall::kOpenTemp, temp_folder, [&](FakeDisk& disk) -> Result<Opened> {
    const std::string path = fmt::format("{}/{}", temp_folder, temp_files_made_++);
    FakeDisk::Spot spot;
    const int error = disk.locate(path, spot);
    if (error != 0) return error_of(error, FileCall::kOpenTemp, temp_folder);
    auto node = std::make_shared<DiskNode>(false);
    node->is_locked = true;
    disk.set_name(spot, node);
    return Opened(std::make_unique<FakeTempFile>(Handle{*this, path, node, disk.power_cuts()}));
  });
}

Result<std::unique_ptr<ReadFile>> PowerCutFileOps::open_read(const std::string& path) {
  using Opened = std::unique_ptr<ReadFile>;
  return run<Opened>(FileCall::kOpenRead, path, [&](FakeDisk& disk) -> Result<Opened> {
    const DiskNodePtr node = disk.find(path);
    if (node == nullptr) return Opened();
    if (node->is_folder) return not_a_file(path, "a folder");
    return Opened(std::make_unique<FakeReadFile>(Handle{*this, path, node, disk.power_cuts()}));
  });
}

Result<std::unique_ptr<Folder>> PowerCutFileOps::open_folder(const std::string& path) {
  using Opened = std::unique_ptr<Folder>;
  return run<Opened>(FileCall::kOpenFolder, path, [&](FakeDisk& disk) -> Result<Opened> {
    const DiskNodePtr node = disk.find(path);
    if (node == nullptr || !node->is_folder) return Opened();
    return Opened(std::make_unique<FakeFolder>(Handle{*this, path, node, disk.power_cuts()}));
  });
}

Result<std::optional<std::uint64_t>> PowerCutFileOps::file_size(const std::string& path) {
  using Size = std::optional<std::uint64_t>;
  return run<Size>(FileCall::kFileSize, path, [&](FakeDisk& disk) -> Result<Size> {
    const DiskNodePtr node = disk.find(path);
    if (node == nullptr) return Size();
    if (node->is_folder) return not_a_file(path, "a folder");
    return Size(node->bytes.size());
  });
}

Result<bool> PowerCutFileOps::unlink(const std::string& path) {
  return run<bool>(FileCall::kUnlink, path, [&](FakeDisk& disk) -> Result<bool> {
    const DiskNodePtr node = disk.find(path);
    FakeDisk::Spot spot;
    if (node == nullptr || disk.locate(path, spot) != 0) return false;
    if (node->is_folder) return not_a_file(path, "a folder");
    disk.set_name(spot, nullptr);
    return true;
  });
}

Result<bool> PowerCutFileOps::make_folder(const std::string& path) {
  return run<bool>(FileCall::kMakeFolder, path, [&](FakeDisk& disk) -> Result<bool> {
    if (disk.find(path) != nullptr) return false;
    FakeDisk::Spot spot;
    const int error = disk.locate(path, spot);
    if (error != 0) return error_of(error, FileCall::kMakeFolder, path);
    disk.set_name(spot, std::make_shared<DiskNode>(true));
    return true;
  });
}

Result<bool> PowerCutFileOps::remove_folder(const std::string& path) {
  return run<bool>(FileCall::kUnlink, path, [&](FakeDisk& disk) -> Result<bool> {
    const DiskNodePtr node = disk.find(path);
    FakeDisk::Spot spot;
    if (node == nullptr || !node->is_folder || disk.locate(path, spot) != 0) return false;
    if (!node->names.empty()) return false;
    disk.set_name(spot, nullptr);
    return true;
  });
}

Result<std::unique_ptr<FileLock>> PowerCutFileOps::try_lock(const std::string& path) {
  using Opened = std::unique_ptr<FileLock>;
  return run<Opened>(FileCall::kTryLock, path, [&](FakeDisk& disk) -> Result<Opened> {
    DiskNodePtr node = disk.find(path);
    if (node == nullptr) {
      FakeDisk::Spot spot;
      const int error = disk.locate(path, spot);
      if (error != 0) return error_of(error, FileCall::kTryLock, path);
      node = std::make_shared<DiskNode>(false);
      disk.set_name(spot, node);
    }
    if (std::exchange(node->is_locked, true)) return Opened();
    return Opened(std::make_unique<FakeLock>(Handle{*this, path, node, disk.power_cuts()}));
  });
}

Result<bool> PowerCutFileOps::sweep_temp(const std::string& path) {
  return run<bool>(FileCall::kSweepTemp, path, [&](FakeDisk& disk) -> Result<bool> {
    const DiskNodePtr node = disk.find(path);
    FakeDisk::Spot spot;
    if (node == nullptr || node->is_locked || disk.locate(path, spot) != 0) return false;
    disk.set_name(spot, nullptr);
    return true;
  });
}

}  // namespace batchloom::objstore
