// SPDX-License-Identifier: Apache-2.0
// Which calls of a fake FileOps fail, and how many there were.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/mutex.h"

namespace batchloom::objstore {

/// The calls of FileOps and of what it opens.
enum class FileCall : std::uint8_t {
  kOpenTemp,
  kWrite,
  kSyncData,
  kLink,
  kReplace,
  kOpenRead,
  kSizeOfOpen,
  kRead,
  kOpenFolder,
  kSyncFolder,
  kNextEntry,
  kFileSize,
  kUnlink,
  kMakeFolder,
  kTryLock,
  kSweepTemp,
};
inline constexpr std::size_t kFileCalls = 16;

/// Tests that try a fault at every call try every nth: 1, or the environment's
/// BATCHLOOM_FAULT_STRIDE, for sanitizers.
inline std::uint64_t fault_stride() {
  const char* text = std::getenv("BATCHLOOM_FAULT_STRIDE");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

/// As file_error() wants it: "open a file in", ...
std::string_view operation_of(FileCall call);

/// What goes wrong in a call.
struct FileFault {
  int error = 0;              ///< ENOSPC, EIO, EACCES, ...; 0 for nothing.
  bool takes_effect = false;  ///< Names change, but the call says `error`. Only EIO does so.
  bool power_off = false;     ///< All later calls fail with EIO, until the power is back.
};

/// Thread-safe.
class FileFaults {
 public:
  /// The call number `index` from now on (0 is the next) meets `fault`.
  void fail_call(std::uint64_t index, FileFault fault);
  /// From the call number `index` on, every call of these kinds meets `fault`.
  void fail_from(std::uint64_t index, const std::vector<FileCall>& kinds, FileFault fault);
  /// Every call of this kind meets `fault`.
  void fail_every(FileCall kind, FileFault fault);
  void clear();

  /// Runs before each call, outside all locks: here a test lets another store act in between.
  void before_call(std::function<void(FileCall, const std::string& path)> hook);

  /// Calls since the beginning, failed ones too.
  std::uint64_t calls() const;
  std::uint64_t calls(FileCall kind) const;
  /// Calls that met a fault; not those while the power was off.
  std::uint64_t met() const;

  /// For the fake: a call is about to happen. Runs the hook.
  FileFault meet(FileCall kind, const std::string& path);
  bool is_off() const;
  void power_on();

 private:
  mutable Mutex mutex_;
  bool is_off_ BL_GUARDED_BY(mutex_) = false;
  std::uint64_t calls_ BL_GUARDED_BY(mutex_) = 0;
  std::array<std::uint64_t, kFileCalls> calls_by_kind_ BL_GUARDED_BY(mutex_) = {};
  std::optional<std::uint64_t> failing_call_ BL_GUARDED_BY(mutex_);
  FileFault call_fault_ BL_GUARDED_BY(mutex_);
  std::uint64_t kind_faults_from_ BL_GUARDED_BY(mutex_) = 0;  // The first call that meets them.
  std::map<FileCall, FileFault> kind_faults_ BL_GUARDED_BY(mutex_);
  std::uint64_t met_ BL_GUARDED_BY(mutex_) = 0;
  std::function<void(FileCall, const std::string&)> hook_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::objstore
