// SPDX-License-Identifier: Apache-2.0
// A FileOps over a FakeDisk: a machine that can lose its power, and whose calls can fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchloom/base/mutex.h"
#include "batchloom/objstore/fake_disk_testing.h"
#include "batchloom/objstore/file_faults_testing.h"
#include "batchloom/objstore/file_ops.h"

namespace batchloom::objstore {

/// The fake. Begins as an empty disk with the folder "/". Temporary files have names, since that
/// leaves more to go wrong. Thread-safe. What it opened must not outlive it.
class PowerCutFileOps final : public FileOps {
 public:
  /// The power goes and comes back. `seed` decides what is left of what was not synced; see
  /// FakeDisk. Open files, folders and locks end: their calls are `unavailable` from now on.
  void power_cut(std::uint64_t seed);

  /// What is to go wrong, and the count of calls.
  FileFaults& faults() { return faults_; }

  Result<std::unique_ptr<TempFile>> open_temp(const std::string& temp_folder) override;
  Result<std::unique_ptr<ReadFile>> open_read(const std::string& path) override;
  Result<std::unique_ptr<Folder>> open_folder(const std::string& path) override;
  Result<std::optional<std::uint64_t>> file_size(const std::string& path) override;
  Result<bool> unlink(const std::string& path) override;
  Result<bool> make_folder(const std::string& path) override;
  Result<bool> remove_folder(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> try_lock(const std::string& path) override;
  Result<bool> sweep_temp(const std::string& path) override;

 private:
  // What an open file, folder or lock knows of itself.
  struct Handle {
    PowerCutFileOps& owner;
    std::string path;
    DiskNodePtr node;
    std::uint64_t power_cuts;  // Before it was opened.
  };
  class FakeTempFile;
  class FakeReadFile;
  class FakeFolder;
  class FakeLock;

  // Runs `body(FakeDisk&)` under the mutex unless a fault comes between. The second form is for
  // calls of what was opened before.
  template <class T, class Body>
  Result<T> run(FileCall kind, const std::string& path, Body body);
  template <class T, class Body>
  static Result<T> run(FileCall kind, const std::string& path, const Handle& handle, Body body);
  static Status run_sync(FileCall kind, const Handle& handle);
  // A handle is closed. Not a call, so it cannot fail.
  static void end(const Handle& handle, bool remove_name);

  FileFaults faults_;
  std::atomic<std::uint64_t> temp_files_made_{0};
  Mutex mutex_;
  FakeDisk disk_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::objstore
