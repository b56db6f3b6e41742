// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/length_distributions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/simulator/length_tables.h"

namespace batchloom::simulator {
namespace {

constexpr std::string_view kBimodal = "bimodal";
constexpr std::string_view kUniform = "uniform";
constexpr std::string_view kOneGiant = "one-giant";
constexpr std::string_view kInCode[] = {kBimodal, kUniform, kOneGiant};

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
class Splitmix64 {
 public:
  explicit Splitmix64(std::uint64_t seed) : state_(seed) {}

  /// In [0, n), by multiplication: off by n / 2^64 of a share at most. Precondition: n > 0.
  std::uint64_t below(std::uint64_t n) {
    state_ += 0x9e3779b97f4a7c15;
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{mix64(state_)} * n) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// A distribution under one context.
struct Shape {
  std::vector<LengthRange> ranges;
  bool log_uniform = true;  ///< Else every length of a range is as likely.
  bool giant_first = false;
};

Shape shape_of(std::span<const LengthRange> ranges) {
  return {.ranges = {ranges.begin(), ranges.end()}};
}

std::optional<Shape> find_shape(std::string_view name, std::uint32_t context) {
  if (name == kBimodal) {
    return Shape{.ranges = {{1024, 2048, 99}, {context / 2, context, 1}}};
  }
  if (name == kUniform) return Shape{.ranges = {{0, context, 1}}, .log_uniform = false};
  if (name == kOneGiant) return Shape{.ranges = {{512, 2048, 1}}, .giant_first = true};
  for (const LengthTable& table : length_tables()) {
    if (table.name == name) return shape_of(table.ranges);
  }
  return std::nullopt;
}

/// Drops the ranges of which nothing fits.
Result<Shape> shape_within(std::string_view name, std::uint32_t context) {
  std::optional<Shape> shape = find_shape(name, context);
  if (!shape) {
    return Status::invalid(fmt::format("no distribution of lengths is called '{}'; there are {}",
                                       name, fmt::join(length_distribution_names(), ", ")));
  }
  const std::uint32_t shortest = std::ranges::min(shape->ranges, {}, &LengthRange::above).above + 1;
  std::erase_if(shape->ranges, [&](const LengthRange& range) { return range.above >= context; });
  if (shape->ranges.empty()) {
    return Status::invalid(
        fmt::format("a context of {} tokens holds no sample of '{}', whose shortest has {}",
                    context, name, shortest));
  }
  return *std::move(shape);
}

const LengthRange& pick_range(std::span<const LengthRange> ranges, std::uint64_t all_weights,
                              Splitmix64& random) {
  std::uint64_t left = random.below(all_weights);
  std::size_t i = 0;
  while (left >= ranges[i].weight) left -= ranges[i++].weight;
  return ranges[i];
}

std::uint64_t pick_length(const LengthRange& range, bool log_uniform, Splitmix64& random) {
  while (true) {
    const std::uint64_t length =
        std::uint64_t{range.above} + 1 + random.below(range.up_to - range.above);
    if (!log_uniform || random.below(length) <= range.above) return length;
  }
}

}  // namespace

std::vector<std::string_view> length_distribution_names() {
  std::vector<std::string_view> names;
  for (const LengthTable& table : length_tables()) names.push_back(table.name);
  names.insert(names.end(), std::begin(kInCode), std::end(kInCode));
  return names;
}

Result<std::vector<std::uint32_t>> draw_lengths(const LengthDraw& draw) {
  if (draw.total_tokens > kTotalTokensMax) {
    return Status::invalid(fmt::format("lengths of {} tokens in all; at most {} can be drawn",
                                       draw.total_tokens, kTotalTokensMax));
  }
  BL_ASSIGN_OR_RETURN(const Shape shape, shape_within(draw.distribution, draw.context_tokens));
  std::uint64_t all_weights = 0;
  for (const LengthRange& range : shape.ranges) all_weights += range.weight;

  Splitmix64 random(draw.seed);
  std::vector<std::uint32_t> lengths;
  std::uint64_t left = draw.total_tokens;
  const auto take = [&](std::uint64_t length) {
    lengths.push_back(static_cast<std::uint32_t>(std::min(length, left)));
    left -= lengths.back();
  };
  if (shape.giant_first && left > 0) take(draw.context_tokens);
  while (left > 0) {
    const LengthRange& range = pick_range(shape.ranges, all_weights, random);
    const std::uint64_t length = pick_length(range, shape.log_uniform, random);
    if (length <= draw.context_tokens) take(length);
  }
  return lengths;
}

}  // namespace batchloom::simulator
