// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchloom::planning {

/// Which items each rank holds. A rank's lie together, ascending, with room for some more; a list
/// that outgrows its room moves to the end. One thread at a time.
class RankItems {
 public:
  /// Item i is on rank_of[i]. Precondition: each below `ranks`.
  RankItems(std::uint32_t ranks, std::span<const std::uint32_t> rank_of);

  /// Valid until the next insert().
  std::span<const std::uint32_t> of(std::uint32_t rank) const {
    return std::span(items_).subspan(lists_[rank].begin, lists_[rank].size);
  }
  /// Precondition: the rank does not hold it.
  void insert(std::uint32_t rank, std::uint32_t item);
  /// Precondition: the rank holds it.
  void remove(std::uint32_t rank, std::uint32_t item);

 private:
  struct List {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
    std::uint32_t room = 0;
  };

  std::vector<List> lists_;  // By rank.
  std::vector<std::uint32_t> items_;
};

}  // namespace batchloom::planning
