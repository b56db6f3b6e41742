// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/store/batch_layout.h"

namespace batchloom::store {

/// A stretch of an object in the making, of which some bytes are borrowed. Small ones of its own
/// lie in one buffer, so that neighbours become one part. One thread at a time.
class PartList {
 public:
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Room for so many parts more, so that the list need not move as it grows.
  void reserve(std::size_t parts) { parts_.reserve(parts_.size() + parts); }

  /// Stretches of one buffer that follow each other become one part, too.
  void borrow(ByteSpan bytes);
  /// Copies.
  void own(ByteSpan bytes);
  /// Keeps the buffer as it is.
  void own(Bytes&& bytes);
  /// Zeros up to where a column may begin, if the list began where one may.
  void pad();
  /// All parts of `list`, with what it owns.
  void append(PartList&& list);

  /// Adds the list's parts to `parts`, and to `owned` the buffers that they point to besides what
  /// was borrowed. Those may be moved.
  void finish(std::vector<ByteSpan>& parts, std::vector<Bytes>& owned) &&;

 private:
  struct Part {
    const std::byte* borrowed = nullptr;
    std::size_t place = 0;  // In own_, where nothing is borrowed.
    std::size_t size = 0;
  };

  void extend_own(std::size_t size);

  std::vector<Part> parts_;
  Bytes own_;
  std::vector<Bytes> kept_;  // Whole buffers; parts point to them as to what is borrowed.
  std::uint64_t size_bytes_ = 0;
};

}  // namespace batchloom::store
