// SPDX-License-Identifier: Apache-2.0
// The one mutex, with clang's thread-safety annotations: `clang` builds refuse an unguarded access.
// Never hold it across I/O, a callback, a wait or a send.
#pragma once

#include <mutex>

#if defined(__clang__)
#define BL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define BL_THREAD_ANNOTATION(x)
#endif

/// On a member: only touched while `mutex` is held.
#define BL_GUARDED_BY(mutex) BL_THREAD_ANNOTATION(guarded_by(mutex))
/// On a function: the caller holds `mutex`.
#define BL_REQUIRES(mutex) BL_THREAD_ANNOTATION(requires_capability(mutex))

namespace batchloom {

class BL_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() BL_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() BL_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for its scope.
class BL_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BL_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() BL_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace batchloom
