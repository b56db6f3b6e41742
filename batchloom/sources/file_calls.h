// SPDX-License-Identifier: Apache-2.0
// Which files somebody waits for: a call to a file system may hang, and nobody can end that, but it
// can be said which it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/mutex.h"

namespace batchloom::sources {

enum class FileCallStage : std::uint8_t {
  kLook,       ///< At its size and time.
  kOpenIndex,  ///< Its index.
  kRead,       ///< It, opened before where it was not.
};

/// "reading".
std::string_view to_string(FileCallStage stage);

/// A call that has not come back.
struct FileCall {
  std::uint64_t number = 0;  ///< Of no other call.
  FileCallStage stage = FileCallStage::kLook;
  std::string path;

  friend bool operator==(const FileCall&, const FileCall&) = default;
};

/// Thread-safe.
class FileCalls {
 public:
  /// A call, for as long as this lives. What it was made from outlives it, and so does the path.
  class Mark {
   public:
    /// Marks nothing where `calls` is null.
    Mark(FileCalls* calls, FileCallStage stage, std::string_view path);
    ~Mark();
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    FileCalls* const calls_;
    std::uint64_t number_ = 0;
  };

  /// Those that are out, oldest first.
  std::vector<FileCall> out() const;

 private:
  struct Out {
    std::uint64_t number;
    FileCallStage stage;
    std::string_view path;
  };

  mutable Mutex mutex_;
  std::uint64_t next_ BL_GUARDED_BY(mutex_) = 0;
  std::vector<Out> out_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::sources
