// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "batchloom/base/metrics.h"

namespace batchloom::client {

/// Bytes for one user, who gives them back to their pool by letting go of this. It may outlive the
/// pool. Movable; one thread at a time.
class PooledBuffer {
 public:
  /// Without bytes.
  PooledBuffer();
  PooledBuffer(PooledBuffer&&) noexcept;
  PooledBuffer& operator=(PooledBuffer&&) noexcept;
  ~PooledBuffer();

  /// What was asked for, at a multiple of 64 in memory. Not initialised.
  std::span<std::byte> bytes() const;

 private:
  friend class BufferPool;
  class Shelf;
  struct Block;
  PooledBuffer(std::shared_ptr<Shelf> shelf, std::unique_ptr<Block> block, std::size_t size_bytes);
  void give_back();

  std::shared_ptr<Shelf> shelf_;
  std::unique_ptr<Block> block_;
  std::size_t size_bytes_ = 0;
};

/// Keeps buffers that nobody uses, for the next user of about as many bytes: memory fresh from the
/// kernel costs a fault a page. Each has pages of its own, which go back to the kernel. What is in
/// use is its user's to bound. Counters: client_buffers_made, client_buffers_reused. Thread-safe.
class BufferPool {
 public:
  /// At most so many bytes are kept, or the two buffers that were given back last, whatever their
  /// size: else whoever has less memory than a step takes would find none. What was given back
  /// first goes first.
  BufferPool(std::uint64_t kept_bytes_max, Counters& counters);

  /// A buffer of `size_bytes`, which may be 0.
  PooledBuffer take(std::size_t size_bytes);

  std::uint64_t kept_bytes() const;

 private:
  std::shared_ptr<PooledBuffer::Shelf> shelf_;
  Counter& made_;
  Counter& reused_;
};

}  // namespace batchloom::client
