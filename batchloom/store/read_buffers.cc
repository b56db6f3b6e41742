// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/read_buffers.h"

#include <iterator>
#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"

namespace batchloom::store {

class ReadBuffers::Shelf {
 public:
  Bytes take(std::size_t size_bytes) {
    const MutexLock lock(mutex_);
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->capacity() < size_bytes || it->capacity() / 2 > size_bytes) continue;
      if (best == kept_.end() || it->capacity() < best->capacity()) best = it;
    }
    if (best == kept_.end()) return {};
    Bytes found = std::move(*best);
    kept_.erase(best);
    kept_bytes_ -= found.capacity();
    return found;
  }

  void keep(Bytes bytes) {
    if (bytes.capacity() > kKeptBytesMax) return;
    std::vector<Bytes> dropped;  // Freed without the lock.
    const MutexLock lock(mutex_);
    kept_bytes_ += bytes.capacity();
    kept_.push_back(std::move(bytes));
    const auto first = kept_.begin();
    auto end = first;
    for (; kept_bytes_ > kKeptBytesMax; ++end) kept_bytes_ -= end->capacity();
    std::move(first, end, std::back_inserter(dropped));
    kept_.erase(first, end);
  }

 private:
  Mutex mutex_;
  std::vector<Bytes> kept_ BL_GUARDED_BY(mutex_);  ///< As they were let go.
  std::size_t kept_bytes_ BL_GUARDED_BY(mutex_) = 0;
};

ReadBuffers::ReadBuffers() : shelf_(std::make_shared<Shelf>()) {}

Bytes ReadBuffers::take(std::size_t size_bytes) {
  return shelf_->take(size_bytes);
}

std::shared_ptr<const Bytes> ReadBuffers::share(Bytes bytes) {
  auto held = std::make_unique<Bytes>(std::move(bytes));
  return {held.release(), [shelf = shelf_](Bytes* unused) {
            shelf->keep(std::move(*unused));
            delete unused;
          }};
}

}  // namespace batchloom::store
