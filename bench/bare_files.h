// SPDX-License-Identifier: Apache-2.0
// What a disk takes without a store on it: files written as LocalStore writes them, and nothing
// else.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/check.h"
#include "batchloom/base/random.h"
#include "batchloom/base/runtime.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom {

struct BareFiles {
  std::string folder;  ///< Exists.
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  std::uint32_t writers = 1;  ///< Threads.
  objstore::FsyncPolicy fsync = objstore::FsyncPolicy::kAlways;
};

inline void write_bare_file(const BareFiles& files, const objstore::Fd& folder, ByteSpan bytes,
                            std::uint64_t number) {
  const objstore::Fd file = objstore::Fd::open(files.folder, O_TMPFILE | O_WRONLY);
  BL_CHECK(file.is_open(), "O_TMPFILE");
  while (!bytes.empty()) {
    const ssize_t size =
        objstore::retry_interrupted([&] { return write(file.get(), bytes.data(), bytes.size()); });
    BL_CHECK(size > 0, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  const bool syncs = files.fsync == objstore::FsyncPolicy::kAlways;
  BL_CHECK(!syncs || fdatasync(file.get()) == 0, "fdatasync");
  const std::string from = fmt::format("/proc/self/fd/{}", file.get());
  const std::string name = std::to_string(number);
  BL_CHECK(linkat(AT_FDCWD, from.c_str(), folder.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0,
           "linkat");
  BL_CHECK(!syncs || fsync(folder.get()) == 0, "fsync");
}

/// Writes them all from one buffer; returns the seconds it took.
inline double write_bare_files(Runtime& runtime, const BareFiles& files) {
  Bytes content(files.size_bytes);
  Random random(1);
  for (std::size_t i = 0; i + 8 <= content.size(); i += 8) store_le(random.next(), &content[i]);
  const objstore::Fd folder = objstore::Fd::open(files.folder, O_RDONLY | O_DIRECTORY);
  BL_CHECK(folder.is_open(), "open");
  std::atomic<std::uint64_t> next = 0;
  const Time begin = runtime.now();
  std::vector<std::unique_ptr<Task>> writers;
  for (std::uint32_t i = 0; i < files.writers; ++i) {
    writers.push_back(runtime.spawn("writer", [&](const std::stop_token&) {
      for (auto number = next++; number < files.count; number = next++) {
        write_bare_file(files, folder, content, number);
      }
    }));
  }
  for (const auto& writer : writers) writer->join();
  return std::chrono::duration<double>(runtime.now() - begin).count();
}

}  // namespace batchloom
