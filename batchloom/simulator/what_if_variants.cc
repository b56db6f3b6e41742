// SPDX-License-Identifier: Apache-2.0
// A what-if's assumptions, one changed at a time.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/cost_curve.h"
#include "batchloom/simulator/what_if.h"

namespace batchloom::simulator {
namespace {

/// A number that is halved and doubled.
struct Factor {
  std::uint64_t times = 1;
  std::uint64_t over = 1;

  std::uint64_t of(std::uint64_t value) const { return value * times / over; }
  std::uint32_t of_count(std::uint32_t value) const {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(of(value), 1, UINT32_MAX));
  }
};
constexpr Factor kHalfAndDouble[] = {{1, 2}, {2, 1}};

std::string rate_text(std::uint64_t bytes_per_s) {
  return fmt::format("{:g} GB/s", static_cast<double>(bytes_per_s) / 1e9);
}

std::string time_text(std::uint64_t ns) {
  return fmt::format("{:g} us", static_cast<double>(ns) / 1e3);
}

/// Every point takes so much longer. `invalid` where that leaves 64 bits.
Result<planning::CostCurve> slowed(const planning::CostCurve& curve, Factor factor) {
  if (curve.points().empty()) return curve;
  std::vector<planning::CostPoint> points(curve.points().begin(), curve.points().end());
  for (planning::CostPoint& point : points) point.time_ps = factor.of(point.time_ps);
  return planning::CostCurve::create(std::move(points), curve.growth());
}

class VariantList {
 public:
  VariantList(const Cluster& cluster, const WhatIfOptions& options)
      : cluster_(cluster), options_(options) {}

  std::vector<Variant> make() && {
    add("as given", "");
    for (const Factor factor : kHalfAndDouble) add_bandwidths(factor);
    add("links", "infinitely fast").options.times.links = false;
    for (const Factor factor : kHalfAndDouble) add_latency(factor);
    for (const Factor factor : kHalfAndDouble) add_backward_bytes(factor);
    for (const std::uint32_t percent : {50U, 0U}) add_overlap(percent);
    add("static groups", "for the longest sample of a step").options.groups = GroupRule::kLongest;
    add("rings", "chosen without regard to links").options.rings = RingRule::kAnyRanks;
    for (const Factor factor : kHalfAndDouble) add_stages(factor);
    for (const Factor factor : kHalfAndDouble) add_computing(factor);
    for (const Factor factor : kHalfAndDouble) add_launch(factor);
    for (const Factor factor : kHalfAndDouble) add_capacity(factor);
    for (const Factor factor : kHalfAndDouble) add_min_share(factor);
    add("offload", cluster_.offload ? "off" : "on").cluster.offload = !cluster_.offload;
    return std::move(variants_);
  }

 private:
  Variant& add(std::string assumption, std::string value) {
    variants_.push_back({.assumption = std::move(assumption),
                         .value = std::move(value),
                         .cluster = cluster_,
                         .options = options_});
    variants_.back().options.timeline = false;
    return variants_.back();
  }

  /// With other levels. Precondition: they nest as the cluster's do.
  void add_levels(std::string assumption, std::string value, std::vector<model::Level> levels) {
    add(std::move(assumption), std::move(value)).cluster.topology =
        model::Topology::create(cluster_.topology.axes(), std::move(levels)).value();
  }

  void add_bandwidths(Factor factor) {
    const std::vector<model::Level>& levels = cluster_.topology.levels();
    for (std::size_t i = 0; i < levels.size(); ++i) {
      std::vector<model::Level> changed = levels;
      std::uint64_t& bandwidth = changed[i].bandwidth_bytes_per_s;
      bandwidth = std::max<std::uint64_t>(factor.of(bandwidth), 1);
      add_levels("bandwidth of " + levels[i].name, rate_text(bandwidth), changed);
    }
  }

  void add_latency(Factor factor) {
    std::vector<model::Level> changed = cluster_.topology.levels();
    std::string values;
    for (model::Level& level : changed) {
      level.latency_ns = factor.of(level.latency_ns);
      values += fmt::format("{}{}", values.empty() ? "" : ", ", time_text(level.latency_ns));
    }
    if (!changed.empty()) add_levels("latency", values, changed);
  }

  void add_backward_bytes(Factor factor) {
    const std::uint32_t bytes = factor.of_count(options_.times.backward_bytes_factor);
    add("bytes of backward", fmt::format("{} x forward", bytes))
        .options.times.backward_bytes_factor = bytes;
  }

  /// There is no doubling it: as given, all of a step's computing hides a hop.
  void add_overlap(std::uint32_t percent) {
    add("overlap of hops", fmt::format("{} % of computing", percent))
        .options.times.overlap_percent = percent;
  }

  /// As many ranks, of which others are data parallel, or else context parallel.
  void add_stages(Factor factor) {
    std::vector<model::AxisExtent> axes = cluster_.topology.axes();
    const bool has_stages =
        std::ranges::find(axes, model::Axis::kPp, &model::AxisExtent::axis) != axes.end();
    if (!has_stages) axes.insert(axes.begin(), {.axis = model::Axis::kPp, .extent = 1});
    if (!exchange(axes, model::Axis::kPp, factor)) return;
    const Factor inverse{.times = factor.over, .over = factor.times};
    if (!exchange(axes, model::Axis::kDp, inverse) && !exchange(axes, model::Axis::kCp, inverse)) {
      return;
    }
    const auto topology = model::Topology::create(std::move(axes), cluster_.topology.levels());
    const std::uint32_t stages = topology->extent(model::Axis::kPp);
    const std::string balance = ladder_of(*topology)[2];
    const bool other = balance != ladder_of(cluster_.topology)[2];
    Variant& variant = add("pipeline stages", other ? fmt::format("{}, with {}", stages, balance)
                                                    : std::to_string(stages));
    variant.cluster.topology = *topology;
    if (other) variant.balance = balance;
  }

  /// Whether the axis is there and its extent stays a whole number.
  static bool exchange(std::vector<model::AxisExtent>& axes, model::Axis axis, Factor factor) {
    const auto found = std::ranges::find(axes, axis, &model::AxisExtent::axis);
    if (found == axes.end() || found->extent * factor.times % factor.over != 0) return false;
    found->extent = factor.of_count(found->extent);
    return true;
  }

  void add_computing(Factor factor) {
    planning::CostModel costs = cluster_.costs;
    for (planning::CostCurve* curve :
         {&costs.attention, &costs.attention_forward, &costs.linear, &costs.linear_forward}) {
      Result<planning::CostCurve> changed = slowed(*curve, factor);
      if (!changed.is_ok()) return;  // Of times that no cluster has.
      *curve = *std::move(changed);
    }
    add("computing", factor.times > factor.over ? "half as fast" : "twice as fast").cluster.costs =
        std::move(costs);
  }

  void add_launch(Factor factor) {
    const std::uint64_t launch_ns = factor.of(cluster_.costs.launch_ns);
    add("launch", time_text(launch_ns)).cluster.costs.launch_ns = launch_ns;
  }

  void add_capacity(Factor factor) {
    const std::uint32_t tokens = factor.of_count(cluster_.capacity_tokens);
    add("capacity", fmt::format("{} tokens", tokens)).cluster.capacity_tokens = tokens;
  }

  void add_min_share(Factor factor) {
    const std::uint32_t tokens = factor.of_count(cluster_.min_share_tokens);
    add("smallest share", fmt::format("{} tokens", tokens)).cluster.min_share_tokens = tokens;
  }

  const Cluster& cluster_;
  const WhatIfOptions& options_;
  std::vector<Variant> variants_;
};

}  // namespace

std::vector<std::string> Variant::strategies(std::vector<std::string> given) const {
  for (std::string& name : given) {
    if (!balance.empty() && (name == "dp_balance" || name == "pp_balance")) name = balance;
  }
  return given;
}

std::vector<Variant> variants_of(const Cluster& cluster, const WhatIfOptions& options) {
  return VariantList(cluster, options).make();
}

}  // namespace batchloom::simulator
