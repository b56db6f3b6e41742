// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_items.h"

#include <algorithm>

namespace batchloom::planning {
namespace {

std::uint32_t room_for(std::uint32_t size) {
  return size + size / 4 + 2;
}

}  // namespace

RankItems::RankItems(std::uint32_t ranks, std::span<const std::uint32_t> rank_of) : lists_(ranks) {
  for (const std::uint32_t rank : rank_of) ++lists_[rank].room;
  std::uint32_t end = 0;
  for (List& list : lists_) {
    list.begin = end;
    list.room = room_for(list.room);
    end += list.room;
  }
  items_.resize(end);
  for (std::uint32_t item = 0; item < rank_of.size(); ++item) {
    List& list = lists_[rank_of[item]];
    items_[list.begin + list.size++] = item;
  }
}

void RankItems::insert(std::uint32_t rank, std::uint32_t item) {
  List& list = lists_[rank];
  if (list.size == list.room) {
    const auto begin = static_cast<std::uint32_t>(items_.size());
    list.room = 2 * room_for(list.size);
    items_.resize(begin + list.room);
    std::copy_n(items_.begin() + list.begin, list.size, items_.begin() + begin);
    list.begin = begin;
  }
  const auto first = items_.begin() + list.begin;
  const auto place = std::lower_bound(first, first + list.size, item);
  std::move_backward(place, first + list.size, first + list.size + 1);
  *place = item;
  ++list.size;
}

void RankItems::remove(std::uint32_t rank, std::uint32_t item) {
  List& list = lists_[rank];
  const auto first = items_.begin() + list.begin;
  const auto place = std::lower_bound(first, first + list.size, item);
  std::move(place + 1, first + list.size, place);
  --list.size;
}

}  // namespace batchloom::planning
