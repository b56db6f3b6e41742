// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/pages.h"

#include <sys/mman.h>

#include <new>

#include "batchloom/base/check.h"

namespace batchloom {

Pages::Pages(std::size_t bytes) : size_(bytes) {
  BL_CHECK(bytes > 0, "no pages");
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}

Pages::~Pages() {
  munmap(data_, size_);
}

}  // namespace batchloom
