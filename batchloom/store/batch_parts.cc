// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_parts.h"

#include <utility>

namespace batchloom::store {

void PartList::borrow(ByteSpan bytes) {
  if (bytes.empty()) return;
  size_bytes_ += bytes.size();
  if (!parts_.empty() && parts_.back().borrowed != nullptr &&
      parts_.back().borrowed + parts_.back().size == bytes.data()) {
    parts_.back().size += bytes.size();
  } else {
    parts_.push_back({.borrowed = bytes.data(), .place = 0, .size = bytes.size()});
  }
}

void PartList::own(ByteSpan bytes) {
  extend_own(bytes.size());
  own_.insert(own_.end(), bytes.begin(), bytes.end());
}

void PartList::own(Bytes&& bytes) {
  if (!bytes.empty()) borrow(kept_.emplace_back(std::move(bytes)));
}

void PartList::pad() {
  const std::size_t zeros = column_aligned(size_bytes_) - size_bytes_;
  extend_own(zeros);
  own_.resize(own_.size() + zeros);
}

void PartList::append(PartList&& list) {
  for (Bytes& bytes : list.kept_) kept_.push_back(std::move(bytes));
  for (Part& part : list.parts_) {
    if (part.borrowed == nullptr) part.place += own_.size();
  }
  own_.insert(own_.end(), list.own_.begin(), list.own_.end());
  parts_.insert(parts_.end(), list.parts_.begin(), list.parts_.end());
  size_bytes_ += list.size_bytes_;
}

void PartList::finish(std::vector<ByteSpan>& parts, std::vector<Bytes>& owned) && {
  parts.reserve(parts.size() + parts_.size());
  for (const Part& part : parts_) {
    parts.push_back(part.borrowed != nullptr ? ByteSpan(part.borrowed, part.size)
                                             : ByteSpan(own_).subspan(part.place, part.size));
  }
  for (Bytes& bytes : kept_) owned.push_back(std::move(bytes));
  owned.push_back(std::move(own_));
}

void PartList::extend_own(std::size_t size) {
  if (size == 0) return;
  size_bytes_ += size;
  if (!parts_.empty() && parts_.back().borrowed == nullptr) {
    parts_.back().size += size;
  } else {
    parts_.push_back({.borrowed = nullptr, .place = own_.size(), .size = size});
  }
}

}  // namespace batchloom::store
