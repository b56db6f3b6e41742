// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as a box with named axes, and the hardware they sit on as nested groups.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"

namespace batchloom::model {

/// What ranks along an axis share or divide. Values are part of the plan format.
enum class Axis : std::uint8_t {
  kPp = 0,  ///< Pipeline stages: the same samples, other layers.
  kDp = 1,  ///< Data parallel: other samples.
  kCp = 2,  ///< Context parallel: other stretches of the same samples.
  kTp = 3,  ///< Tensor parallel: the same tokens, other parts of each layer.
};
inline constexpr std::size_t kAxisCount = 4;

/// "pp", "dp", "cp" or "tp".
std::string_view to_string(Axis axis);

struct AxisExtent {
  Axis axis = Axis::kDp;
  std::uint32_t extent = 1;

  friend bool operator==(const AxisExtent&, const AxisExtent&) = default;
};

/// A place along every axis; 0 along those that a topology lacks.
struct Coordinates {
  std::array<std::uint32_t, kAxisCount> by_axis{};

  std::uint32_t& operator[](Axis axis) { return by_axis[static_cast<std::size_t>(axis)]; }
  std::uint32_t operator[](Axis axis) const { return by_axis[static_cast<std::size_t>(axis)]; }
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

inline constexpr std::size_t kLevelsMax = 64;
inline constexpr std::size_t kLevelNameMaxBytes = 255;

/// Ranks [k x n, (k + 1) x n) form a group that is joined by links of this bandwidth and latency.
struct Level {
  std::string name;  ///< "island", "leaf", "spine", ...
  std::uint32_t ranks_per_group = 1;
  std::uint64_t bandwidth_bytes_per_s = 0;  ///< Per rank and direction.
  std::uint64_t latency_ns = 0;

  friend bool operator==(const Level&, const Level&) = default;
};

/// Immutable. The default is one rank without axes.
class Topology {
 public:
  Topology() = default;

  /// `axes` outermost first: the last one's neighbours have neighbouring ranks. Absent axes have
  /// extent 1. `levels` innermost first, each group a whole number of the groups before it.
  /// `invalid`: an axis twice, an extent of 0, more ranks than 32 bits count, levels that do not
  /// nest or have no bandwidth.
  static Result<Topology> create(std::vector<AxisExtent> axes, std::vector<Level> levels = {});

  /// From axes like "pp=1 dp=8 cp=1 tp=1", outermost first. `invalid`: as create(), and what is not
  /// of this form or names an unknown axis; the message quotes the offending word.
  static Result<Topology> parse(std::string_view axes);

  const std::vector<AxisExtent>& axes() const { return axes_; }
  const std::vector<Level>& levels() const { return levels_; }
  /// 1 for an axis that was not named.
  std::uint32_t extent(Axis axis) const;
  /// The product of all extents.
  std::uint32_t world_size() const { return world_size_; }
  /// The product of the dp and cp extents.
  std::uint32_t hdp_size() const { return extent(Axis::kDp) * extent(Axis::kCp); }

  /// Mixed radix, outermost axis first. Preconditions: `rank` below world_size(); each coordinate
  /// below its axis's extent.
  Coordinates coordinates(Rank rank) const;
  Rank rank(const Coordinates& coordinates) const;

  /// The slice that a rank belongs to: the same mixed radix over the dp and cp axes alone.
  HdpRank hdp_rank(Rank rank) const;
  /// The coordinates of a slice's first rank (pp = tp = 0). Precondition: below hdp_size().
  Coordinates coordinates(HdpRank rank) const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::vector<AxisExtent> axes_;
  std::vector<Level> levels_;
  std::uint32_t world_size_ = 1;
};

/// The axes as parse() reads them; levels are not part of it.
std::string to_string(const Topology& topology);

}  // namespace batchloom::model
