// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "batchloom/base/bytes.h"

namespace batchloom {

/// Bytes that grow at their end and are not initialised: a vector writes zeros first to what is
/// about to be overwritten. One thread at a time.
class RawBuffer {
 public:
  RawBuffer() = default;
  explicit RawBuffer(std::size_t capacity_bytes) { reserve(capacity_bytes); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  ByteSpan bytes() const { return {data_.get(), size_}; }

  /// So many more bytes at the end, not initialised. Spans taken before end where it has to move.
  std::span<std::byte> extend(std::size_t bytes) {
    if (bytes > capacity_ - size_) reserve(std::max(size_ + bytes, 2 * capacity_));
    size_ += bytes;
    return this->bytes().last(bytes);
  }

  void append(ByteSpan bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()).data(), bytes.data(), bytes.size());
  }

 private:
  void reserve(std::size_t capacity_bytes) {
    auto data = std::make_unique_for_overwrite<std::byte[]>(capacity_bytes);
    if (size_ > 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity_bytes;
  }

  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace batchloom
