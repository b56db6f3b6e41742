// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::model {
namespace {

constexpr std::array<Axis, kAxisCount> kAllAxes = {Axis::kPp, Axis::kDp, Axis::kCp, Axis::kTp};

bool divides_samples(Axis axis) {
  return axis == Axis::kDp || axis == Axis::kCp;
}
bool any_axis(Axis) {
  return true;
}

std::optional<Axis> axis_called(std::string_view name) {
  for (const Axis axis : kAllAxes) {
    if (to_string(axis) == name) return axis;
  }
  return std::nullopt;
}

/// One word of the text form, like "dp=8".
Result<AxisExtent> parse_axis(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    return Status::invalid(
        fmt::format("topology: '{}' is not of the form axis=extent; write for example dp=8", word));
  }
  const std::optional<Axis> axis = axis_called(word.substr(0, equals));
  if (word.starts_with("ep=")) {
    return Status::invalid(fmt::format(
        "topology: '{}' names no axis: an expert group is neighbours along dp, who need what they "
        "need without it; leave it out",
        word));
  }
  if (!axis) {
    return Status::invalid(
        fmt::format("topology: '{}' names no axis; the axes are pp, dp, cp and tp", word));
  }
  AxisExtent parsed{.axis = *axis};
  const std::string_view digits = word.substr(equals + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.extent);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Status::invalid(
        fmt::format("topology: the extent in '{}' is not an integer that fits in 32 bits", word));
  }
  return parsed;
}

/// The number of ranks, or why `axes` make no box.
Result<std::uint32_t> count_ranks(const std::vector<AxisExtent>& axes) {
  std::array<bool, kAxisCount> seen{};
  std::uint64_t ranks = 1;
  for (const auto& [axis, extent] : axes) {
    if (std::exchange(seen[static_cast<std::size_t>(axis)], true)) {
      return Status::invalid(fmt::format("topology: the axis {} is named twice", to_string(axis)));
    }
    if (extent == 0) {
      return Status::invalid(
          fmt::format("topology: the axis {} has extent 0; the least is 1", to_string(axis)));
    }
    ranks *= extent;
    if (ranks > std::numeric_limits<std::uint32_t>::max()) {
      return Status::invalid(
          fmt::format("topology: the extents up to {}={} make {} ranks; the most is {}",
                      to_string(axis), extent, ranks, std::numeric_limits<std::uint32_t>::max()));
    }
  }
  return static_cast<std::uint32_t>(ranks);
}

Status check_levels(const std::vector<Level>& levels) {
  if (levels.size() > kLevelsMax) {
    return Status::invalid(
        fmt::format("topology: {} levels, at most {} can be", levels.size(), kLevelsMax));
  }
  std::uint32_t inner = 1;
  for (const Level& level : levels) {
    if (level.name.size() > kLevelNameMaxBytes) {
      return Status::invalid(
          fmt::format("topology: the name of a level has {} bytes, at most {} "
                      "can be",
                      level.name.size(), kLevelNameMaxBytes));
    }
    if (level.ranks_per_group == 0 || level.ranks_per_group % inner != 0) {
      return Status::invalid(fmt::format(
          "topology: a group of level '{}' has {} ranks, which is no multiple of the {} of the "
          "level inside it",
          level.name, level.ranks_per_group, inner));
    }
    if (level.bandwidth_bytes_per_s == 0) {
      return Status::invalid(fmt::format("topology: level '{}' has no bandwidth", level.name));
    }
    inner = level.ranks_per_group;
  }
  return Status::ok();
}

/// The digits of `number` along the axes that `along` accepts, the last axis being the lowest.
template <class Along>
Coordinates split(const std::vector<AxisExtent>& axes, std::uint32_t number, Along along) {
  Coordinates coordinates;
  for (const auto& [axis, extent] : std::views::reverse(axes)) {
    if (!along(axis)) continue;
    coordinates[axis] = number % extent;
    number /= extent;
  }
  BL_CHECK(number == 0, "a rank lies outside its topology");
  return coordinates;
}

/// The inverse of split().
template <class Along>
std::uint32_t join(const std::vector<AxisExtent>& axes, const Coordinates& coordinates,
                   Along along) {
  std::uint32_t number = 0;
  for (const auto& [axis, extent] : axes) {
    BL_CHECK(coordinates[axis] < extent, "a coordinate lies outside its topology");
    if (along(axis)) number = number * extent + coordinates[axis];
  }
  return number;
}

}  // namespace

std::string_view to_string(Axis axis) {
  switch (axis) {
    case Axis::kPp: return "pp";
    case Axis::kDp: return "dp";
    case Axis::kCp: return "cp";
    case Axis::kTp: return "tp";
  }
  return "unknown";
}

Result<Topology> Topology::create(std::vector<AxisExtent> axes, std::vector<Level> levels) {
  Topology topology;
  BL_ASSIGN_OR_RETURN(topology.world_size_, count_ranks(axes));
  BL_RETURN_IF_ERROR(check_levels(levels));
  topology.axes_ = std::move(axes);
  topology.levels_ = std::move(levels);
  return topology;
}

Result<Topology> Topology::parse(std::string_view axes) {
  std::vector<AxisExtent> parsed;
  while (!axes.empty()) {
    const std::string_view word = axes.substr(0, axes.find(' '));
    axes.remove_prefix(std::min(axes.size(), word.size() + 1));
    if (word.empty()) continue;
    BL_ASSIGN_OR_RETURN(const AxisExtent axis, parse_axis(word));
    parsed.push_back(axis);
  }
  if (parsed.empty()) {
    return Status::invalid("topology: no axis is named; write for example \"dp=8 tp=2\"");
  }
  return create(std::move(parsed));
}

std::uint32_t Topology::extent(Axis axis) const {
  const auto place = std::ranges::find(axes_, axis, &AxisExtent::axis);
  return place == axes_.end() ? 1 : place->extent;
}

Coordinates Topology::coordinates(Rank rank) const {
  return split(axes_, rank.value, any_axis);
}

Coordinates Topology::coordinates(HdpRank rank) const {
  return split(axes_, rank.value, divides_samples);
}

Rank Topology::rank(const Coordinates& coordinates) const {
  return Rank(join(axes_, coordinates, any_axis));
}

HdpRank Topology::hdp_rank(Rank rank) const {
  return HdpRank(join(axes_, coordinates(rank), divides_samples));
}

std::string to_string(const Topology& topology) {
  std::string text;
  for (const auto& [axis, extent] : topology.axes()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", to_string(axis), extent);
  }
  return text;
}

}  // namespace batchloom::model
