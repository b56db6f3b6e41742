// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/read_buffers.h"

#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"

namespace batchloom::store {
namespace {

/// A rank works on one step, has the arrays of the next one made and reads a third.
constexpr std::size_t kBuffersKept = 4;

}  // namespace

class ReadBuffers::Shelf {
 public:
  Bytes take() {
    const MutexLock lock(mutex_);
    if (kept_.empty()) return {};
    Bytes last = std::move(kept_.back());
    kept_.pop_back();
    kept_bytes_ -= last.capacity();
    return last;
  }

  void keep(Bytes bytes) {
    const MutexLock lock(mutex_);
    if (kept_.size() == kBuffersKept || bytes.capacity() > kKeptBytesMax - kept_bytes_) return;
    kept_bytes_ += bytes.capacity();
    kept_.push_back(std::move(bytes));
  }

 private:
  Mutex mutex_;
  std::vector<Bytes> kept_ BL_GUARDED_BY(mutex_);
  std::size_t kept_bytes_ BL_GUARDED_BY(mutex_) = 0;
};

ReadBuffers::ReadBuffers() : shelf_(std::make_shared<Shelf>()) {}

Bytes ReadBuffers::take() {
  return shelf_->take();
}

std::shared_ptr<const Bytes> ReadBuffers::share(Bytes bytes) {
  auto held = std::make_unique<Bytes>(std::move(bytes));
  return {held.release(), [shelf = shelf_](Bytes* unused) {
            shelf->keep(std::move(*unused));
            delete unused;
          }};
}

}  // namespace batchloom::store
