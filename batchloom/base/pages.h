// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace batchloom {

/// Whole pages of memory from the kernel, zeroed, that go back to it in the end: for large buffers
/// that come and go in a process whose allocator is not ours to tune. In malloc's heaps they leave
/// holes, which a Python process had 100 MiB of.
class Pages {
 public:
  /// Throws std::bad_alloc. Precondition: `bytes` > 0.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

}  // namespace batchloom
