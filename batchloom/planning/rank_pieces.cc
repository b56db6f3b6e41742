// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_pieces.h"

#include <algorithm>
#include <map>
#include <utility>

namespace batchloom::planning {

RankPieces::RankPieces(const RankLevels& levels, std::uint32_t ranks) : ranks_(ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank > 0 && levels.group_of(0, rank) == levels.group_of(0, rank - 1)) {
      ++pieces_.back().ranks;
    } else {
      pieces_.push_back({1, rank});
    }
  }
  std::ranges::sort(pieces_);
}

std::size_t RankPieces::level(const RankLevels& levels) const {
  std::uint32_t first = UINT32_MAX;
  std::uint32_t last = 0;
  for (const Piece& piece : pieces_) {
    first = std::min(first, piece.first);
    last = std::max(last, piece.first + piece.ranks - 1);
  }
  return levels.joining(first, last);
}

RankPieces RankPieces::take(const RankLevels& levels, std::uint32_t ranks) {
  if (ranks == ranks_) return std::exchange(*this, {});
  if (ranks <= widest()) {
    RankPieces taken;
    taken.insert(take_from_one(ranks));
    return taken;
  }
  for (std::size_t level = 1; level + 1 < levels.count(); ++level) {
    std::map<std::uint32_t, std::uint32_t> sums;
    for (const Piece& piece : pieces_) sums[levels.group_of(level, piece.first)] += piece.ranks;
    auto best = sums.end();
    for (auto it = sums.begin(); it != sums.end(); ++it) {
      if (it->second >= ranks && (best == sums.end() || it->second < best->second)) best = it;
    }
    if (best == sums.end()) continue;
    RankPieces group = take_group(levels, level, best->first);
    RankPieces taken = group.take_from_several(ranks);
    add(group);
    return taken;
  }
  return take_from_several(ranks);
}

void RankPieces::add(const RankPieces& other) {
  for (const Piece& piece : other.pieces_) insert(piece);
}

void RankPieces::append_to(std::vector<model::HdpRank>& members) const {
  std::vector<Piece> sorted = pieces_;
  std::ranges::sort(sorted, {}, &Piece::first);
  for (const Piece& piece : sorted) {
    for (std::uint32_t i = 0; i < piece.ranks; ++i) members.emplace_back(piece.first + i);
  }
}

void RankPieces::insert(Piece piece) {
  if (piece.ranks == 0) return;
  pieces_.insert(std::ranges::upper_bound(pieces_, piece), piece);
  ranks_ += piece.ranks;
}

RankPieces::Piece RankPieces::take_from_one(std::uint32_t ranks) {
  const auto from = std::ranges::lower_bound(pieces_, Piece{ranks, 0});
  const Piece whole = *from;
  pieces_.erase(from);
  ranks_ -= whole.ranks;
  insert({whole.ranks - ranks, whole.first + ranks});
  return {ranks, whole.first};
}

RankPieces RankPieces::take_from_several(std::uint32_t ranks) {
  RankPieces taken;
  while (ranks > 0) {
    const std::uint32_t width = widest();
    if (ranks <= width) {
      taken.insert(take_from_one(ranks));
      break;
    }
    // As many of the largest as fit, neighbours first.
    const auto begin = std::ranges::lower_bound(pieces_, Piece{width, 0});
    const std::uint32_t fitting =
        std::min(static_cast<std::uint32_t>(pieces_.end() - begin), ranks / width);
    for (auto it = begin; it != begin + fitting; ++it) taken.insert(*it);
    pieces_.erase(begin, begin + fitting);
    ranks_ -= fitting * width;
    ranks -= fitting * width;
  }
  return taken;
}

RankPieces RankPieces::take_group(const RankLevels& levels, std::size_t level,
                                  std::uint32_t group) {
  RankPieces taken;
  const auto inside = [&](const Piece& piece) {
    return levels.group_of(level, piece.first) == group;
  };
  for (const Piece& piece : pieces_) {
    if (inside(piece)) taken.insert(piece);
  }
  std::erase_if(pieces_, inside);
  ranks_ -= taken.ranks_;
  return taken;
}

}  // namespace batchloom::planning
