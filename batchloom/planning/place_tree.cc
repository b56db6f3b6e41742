// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/place_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace batchloom::planning {
namespace {

using model::Axis;
using model::Coordinates;
using model::HdpRank;
using model::Rank;

constexpr TensorNeeds kFirstStage{.tokens = true, .positions = true};
constexpr TensorNeeds kLastStage{.labels = true, .loss_mask = true};
constexpr TensorNeeds kAllTensors{
    .tokens = true, .positions = true, .labels = true, .loss_mask = true};

std::size_t index_of(Axis axis) {
  return static_cast<std::size_t>(axis);
}

using std::string_view_literals::operator""sv;

constexpr std::array kSpreadNames = {"dp"sv, "hdp"sv, "world"sv};

}  // namespace

std::string_view to_string(Spread spread) {
  return kSpreadNames[static_cast<std::size_t>(spread)];
}

std::span<const std::string_view> spread_names() {
  return kSpreadNames;
}

std::uint32_t bucket_count(const model::Topology& topology, Spread spread) {
  switch (spread) {
    case Spread::kDp: return topology.extent(Axis::kDp);
    case Spread::kHdp: return topology.hdp_size();
    case Spread::kWorld: return topology.world_size();
  }
  return 0;
}

std::uint32_t bucket_of(const model::Topology& topology, Rank rank, Spread spread) {
  switch (spread) {
    case Spread::kDp: return topology.coordinates(rank)[Axis::kDp];
    case Spread::kHdp: return topology.hdp_rank(rank).value;
    case Spread::kWorld: return rank.value;
  }
  return 0;
}

std::vector<Rank> ranks_of_bucket(const model::Topology& topology, Spread spread,
                                  std::uint32_t bucket) {
  if (spread == Spread::kWorld) return {Rank(bucket)};
  std::vector<Rank> ranks;
  for (Rank rank{0}; rank.value < topology.world_size(); ++rank) {
    if (bucket_of(topology, rank, spread) == bucket) ranks.push_back(rank);
  }
  return ranks;
}

TensorNeeds& TensorNeeds::operator|=(const TensorNeeds& other) {
  tokens |= other.tokens;
  positions |= other.positions;
  labels |= other.labels;
  loss_mask |= other.loss_mask;
  return *this;
}

Result<PlaceTree> PlaceTree::create(Options options) {
  std::array<bool, model::kAxisCount> seen{};
  for (const Axis axis : options.broadcast) {
    if (axis != Axis::kTp && axis != Axis::kPp) {
      return Status::invalid(fmt::format(
          "place tree: a broadcast along {}, where every rank needs other tokens; broadcast along "
          "tp or pp",
          to_string(axis)));
    }
    if (std::exchange(seen[index_of(axis)], true)) {
      return Status::invalid(
          fmt::format("place tree: the broadcast axis {} is named twice", to_string(axis)));
    }
  }
  const std::uint32_t dp = options.topology.extent(Axis::kDp);
  if (options.ep == 0 || dp % options.ep != 0) {
    return Status::invalid(
        fmt::format("place tree: an expert group of ep={} ranks along dp={}, which it must divide",
                    options.ep, dp));
  }
  return PlaceTree(std::move(options));
}

TensorNeeds PlaceTree::needs(Rank rank) const {
  const std::uint32_t stage = topology().coordinates(rank)[Axis::kPp];
  const bool last = stage + 1 == topology().extent(Axis::kPp);
  if (last && options_.mtp) return kAllTensors;
  TensorNeeds needs;
  if (stage == 0) needs |= kFirstStage;
  if (last) needs |= kLastStage;
  return needs;
}

Rank PlaceTree::feeder(Rank rank) const {
  Coordinates place = topology().coordinates(rank);
  for (const Axis axis : options_.broadcast) place[axis] = 0;
  return topology().rank(place);
}

TensorNeeds PlaceTree::fetches(Rank rank) const {
  if (feeder(rank) != rank) return {};
  const bool feeds_all_stages = std::ranges::count(options_.broadcast, Axis::kPp) > 0;
  return feeds_all_stages ? kAllTensors : needs(rank);
}

std::vector<Rank> PlaceTree::slice(HdpRank slice) const {
  std::vector<Rank> ranks;
  Coordinates place = topology().coordinates(slice);
  for (std::uint32_t pp = 0; pp < topology().extent(Axis::kPp); ++pp) {
    for (std::uint32_t tp = 0; tp < topology().extent(Axis::kTp); ++tp) {
      place[Axis::kPp] = pp;
      place[Axis::kTp] = tp;
      ranks.push_back(topology().rank(place));
    }
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<Rank> PlaceTree::fetchers(HdpRank slice) const {
  std::vector<Rank> ranks = this->slice(slice);
  std::erase_if(ranks, [this](Rank rank) { return !fetches(rank).any(); });
  return ranks;
}

std::vector<Rank> PlaceTree::fed_by(Rank rank) const {
  std::vector<Rank> ranks = slice(topology().hdp_rank(rank));
  std::erase_if(ranks, [&](Rank other) { return feeder(other) != rank; });
  return ranks;
}

Sharing PlaceTree::sharing(Rank a, Rank b) const {
  const Coordinates at = topology().coordinates(a);
  const Coordinates bt = topology().coordinates(b);
  if (at[Axis::kDp] != bt[Axis::kDp]) return Sharing::kOtherSamples;
  return at[Axis::kCp] != bt[Axis::kCp] ? Sharing::kOtherStretches : Sharing::kSameTokens;
}

std::uint32_t PlaceTree::bucket_count(Spread spread) const {
  return planning::bucket_count(topology(), spread);
}

std::uint32_t PlaceTree::bucket(Rank rank, Spread spread) const {
  return bucket_of(topology(), rank, spread);
}

std::vector<Rank> PlaceTree::expert_group(Rank rank) const {
  std::vector<Rank> ranks;
  Coordinates place = topology().coordinates(rank);
  const std::uint32_t first = place[Axis::kDp] / options_.ep * options_.ep;
  for (std::uint32_t member = 0; member < options_.ep; ++member) {
    place[Axis::kDp] = first + member;
    ranks.push_back(topology().rank(place));
  }
  return ranks;
}

}  // namespace batchloom::planning
