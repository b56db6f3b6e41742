// SPDX-License-Identifier: Apache-2.0
// A set of ranks that is cut up so that gangs lie close together.
//
// Ranks of one innermost group (an island) that belong to the set are held as pieces. A gang takes
// the smallest piece that holds it. One that no piece holds takes the smallest group of an outer
// level that does, and there the largest pieces and, for what is then left, the smallest that is
// enough: so it touches as few islands as the set allows.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

/// A value. Operations take the levels that it was made with.
class RankPieces {
 public:
  RankPieces() = default;
  /// All of them.
  RankPieces(const RankLevels& levels, std::uint32_t ranks);

  std::uint32_t ranks() const { return ranks_; }
  /// Of the largest piece; 0 for an empty set.
  std::uint32_t widest() const { return pieces_.empty() ? 0 : pieces_.back().ranks; }
  /// A rank of it, found at once: tells sets that share none apart. Precondition: not empty.
  std::uint32_t any_rank() const { return pieces_.front().first; }
  /// The innermost level with all of them in one group. Precondition: not empty.
  std::size_t level(const RankLevels& levels) const;

  /// Removes so many and returns them. Precondition: there are as many.
  RankPieces take(const RankLevels& levels, std::uint32_t ranks);
  void add(const RankPieces& other);

  /// Ascending: a ring in this order crosses the edge of each of its islands once.
  void append_to(std::vector<model::HdpRank>& members) const;
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Piece& piece : pieces_) {
      for (std::uint32_t i = 0; i < piece.ranks; ++i) visit(piece.first + i);
    }
  }

 private:
  /// Ranks [first, first + ranks).
  struct Piece {
    std::uint32_t ranks = 0;
    std::uint32_t first = 0;

    friend auto operator<=>(const Piece&, const Piece&) = default;
  };

  void insert(Piece piece);
  /// Of the smallest piece with as many. Precondition: one has.
  Piece take_from_one(std::uint32_t ranks);
  RankPieces take_from_several(std::uint32_t ranks);
  /// Removes the pieces inside the group.
  RankPieces take_group(const RankLevels& levels, std::size_t level, std::uint32_t group);

  std::vector<Piece> pieces_;  // Ascending.
  std::uint32_t ranks_ = 0;
};

}  // namespace batchloom::planning
