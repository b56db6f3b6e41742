// SPDX-License-Identifier: Apache-2.0
// Thousands of files through a bounded number of open ones.
//
//  1. A reader opens its file with its first read, and again whenever the pool has closed it.
//  2. A file is in use while a read of it goes on; then it is the last of those that wait to be
//     closed. Where another is to be opened and the pool is full, the first of them is closed
//     before. Where all are in use, the read waits until one is not.
//  3. After each opening and each read the file must have the stamp that it had at first: what a
//     reader has given were the bytes of that file, and of no other that took its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/file_calls.h"
#include "batchloom/sources/fingerprint.h"

namespace batchloom::sources {

struct FilePoolOptions {
  /// More of them save openings; fewer leave more of the process's limit (ulimit -n) to others. Of
  /// that limit, as it is when the pool is made, no more than half is taken, and at least 1.
  std::size_t max_open = 256;
  /// Told of every read, where it is there; it outlives the pool.
  FileCalls* calls = nullptr;
};

/// Thread-safe. Readers, and so their reads, must end before the pool does.
class FilePool {
 public:
  /// `runtime` must outlive the pool.
  FilePool(Runtime& runtime, const FilePoolOptions& options);
  ~FilePool();

  /// A reader of the file as it is now. Looks at the file, but opens nothing: a missing permission
  /// is found by the first read. Errors: stamp_of().
  Result<std::unique_ptr<ByteReader>> open(const std::string& path);

  /// A reader of the file that had this stamp. No I/O.
  ///
  /// Errors of its reads, beside those of stamp_of() and of every ByteReader: `conflict` where the
  /// file was changed or replaced, as check_unchanged() says. A read also waits, no longer than
  /// `call` allows, while all files of the pool are in use.
  std::unique_ptr<ByteReader> reader(std::string path, const FileStamp& stamp);

  /// Files open now; never more than max_open.
  std::size_t open_files() const;

 private:
  class PooledFile;
  enum class Turn : std::uint8_t { kUse, kOpen, kWait };

  Status begin_use(PooledFile& file, const CallOptions& call);
  /// What a call may do now; what it must close before it opens.
  Turn take_turn(PooledFile& file, int& to_close) BL_REQUIRES(mutex_);
  Status open_file(PooledFile& file);
  /// `keep_open`: not after an error, which another handle may not have.
  void end_use(PooledFile& file, bool keep_open);
  void forget(PooledFile& file);
  /// Closes a file that is neither idle nor in use any more.
  void close_file(int fd);
  /// Lets all that wait look again.
  void wake_all();

  Runtime& runtime_;
  const std::size_t max_open_;
  FileCalls* const calls_;

  mutable Mutex mutex_;
  std::size_t readers_ BL_GUARDED_BY(mutex_) = 0;
  std::size_t open_ BL_GUARDED_BY(mutex_) = 0;         ///< With those being opened or closed.
  std::list<PooledFile*> idle_ BL_GUARDED_BY(mutex_);  ///< Open and not in use; oldest first.
  std::vector<std::shared_ptr<Event>> waiting_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::sources
