// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/base/bytes.h"

namespace batchloom::store {

/// The memory of what was read and is not needed any more, for what is read next: a rank's runs are
/// of nearly one size in all steps, and as many come and go as it reads ahead. Keeps those that
/// came last, of at most kKeptBytesMax together. Thread-safe.
class ReadBuffers {
 public:
  static constexpr std::size_t kKeptBytesMax = std::size_t{64} << 20;

  ReadBuffers();

  /// The smallest that was let go and holds so much without its memory growing, if at least half of
  /// that is needed; else nothing. What it holds is of before.
  Bytes take(std::size_t size_bytes);

  /// Shares `bytes`; their memory comes back when the last who shares them lets go, which may be
  /// after the end of this.
  std::shared_ptr<const Bytes> share(Bytes bytes);

 private:
  class Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace batchloom::store
