// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <list>
#include <utility>

#include "batchloom/base/mutex.h"
#include "batchloom/base/pages.h"

namespace batchloom::client {

struct PooledBuffer::Block {
  explicit Block(std::size_t capacity) : capacity_bytes(capacity), pages(capacity) {}

  const std::size_t capacity_bytes;
  const Pages pages;
};

/// The blocks that nobody uses, and what buffers in use go back to.
class PooledBuffer::Shelf {
 public:
  /// A trainer may let go of a step and of the one before at once, as the arrays of a third are
  /// made.
  static constexpr std::size_t kKeptLeast = 2;

  explicit Shelf(std::uint64_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}

  /// The smallest that will do, or null.
  std::unique_ptr<Block> find(std::size_t size_bytes) {
    const MutexLock lock(mutex_);
    auto best = blocks_.end();
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
      if ((*it)->capacity_bytes < size_bytes) continue;
      if (best == blocks_.end() || (*it)->capacity_bytes < (*best)->capacity_bytes) best = it;
    }
    if (best == blocks_.end()) return nullptr;
    std::unique_ptr<Block> found = std::move(*best);
    blocks_.erase(best);
    kept_bytes_ -= found->capacity_bytes;
    return found;
  }

  void keep(std::unique_ptr<Block> block) {
    std::list<std::unique_ptr<Block>> dropped;  // Freed without the lock.
    const MutexLock lock(mutex_);
    kept_bytes_ += block->capacity_bytes;
    blocks_.push_back(std::move(block));
    while (kept_bytes_ > kept_bytes_max_ && blocks_.size() > kKeptLeast) {
      kept_bytes_ -= blocks_.front()->capacity_bytes;
      dropped.splice(dropped.end(), blocks_, blocks_.begin());
    }
  }

  std::uint64_t kept_bytes() const {
    const MutexLock lock(mutex_);
    return kept_bytes_;
  }

 private:
  const std::uint64_t kept_bytes_max_;
  mutable Mutex mutex_;
  std::list<std::unique_ptr<Block>> blocks_ BL_GUARDED_BY(mutex_);  // As they were given back.
  std::uint64_t kept_bytes_ BL_GUARDED_BY(mutex_) = 0;
};

namespace {

/// Up to an eighth more than asked for, so that steps of nearly equal size share buffers.
std::size_t rounded_up(std::size_t size_bytes) {
  constexpr std::size_t kLeast = 4096;
  const std::size_t grain = std::max(std::bit_floor(size_bytes) / 8, kLeast);
  return std::max((size_bytes + grain - 1) / grain * grain, kLeast);
}

}  // namespace

PooledBuffer::PooledBuffer(std::shared_ptr<Shelf> shelf, std::unique_ptr<Block> block,
                           std::size_t size_bytes)
    : shelf_(std::move(shelf)), block_(std::move(block)), size_bytes_(size_bytes) {}

PooledBuffer::PooledBuffer() = default;

PooledBuffer::PooledBuffer(PooledBuffer&&) noexcept = default;

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  if (this != &other) {
    give_back();
    shelf_ = std::move(other.shelf_);
    block_ = std::move(other.block_);
    size_bytes_ = other.size_bytes_;
  }
  return *this;
}

PooledBuffer::~PooledBuffer() {
  give_back();
}

void PooledBuffer::give_back() {
  if (block_ != nullptr) shelf_->keep(std::move(block_));
}

std::span<std::byte> PooledBuffer::bytes() const {
  if (block_ == nullptr) return {};
  return {block_->pages.data(), size_bytes_};
}

BufferPool::BufferPool(std::uint64_t kept_bytes_max, Counters& counters)
    : shelf_(std::make_shared<PooledBuffer::Shelf>(kept_bytes_max)),
      made_(counters.counter("client_buffers_made")),
      reused_(counters.counter("client_buffers_reused")) {}

PooledBuffer BufferPool::take(std::size_t size_bytes) {
  std::unique_ptr<PooledBuffer::Block> block = shelf_->find(size_bytes);
  if (block != nullptr) {
    reused_.add();
  } else {
    block = std::make_unique<PooledBuffer::Block>(rounded_up(size_bytes));
    made_.add();
  }
  return {shelf_, std::move(block), size_bytes};
}

std::uint64_t BufferPool::kept_bytes() const {
  return shelf_->kept_bytes();
}

}  // namespace batchloom::client
