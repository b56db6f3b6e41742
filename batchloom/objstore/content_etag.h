// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// Makes the tag that names a content by its hash and size, from stretches of it in order. One
/// thread at a time.
class ContentEtag {
 public:
  void add(ByteSpan bytes) {
    digest_.add(bytes);
    size_bytes_ += bytes.size();
  }
  Etag etag() const { return Etag{fmt::format("{:016x}-{}", digest_.value(), size_bytes_)}; }

 private:
  Digest digest_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace batchloom::objstore
