// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/length_testing.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "batchloom/base/random.h"

namespace batchloom::planning {
namespace {

rc::Gen<std::uint32_t> up_to(std::uint32_t most) {
  return rc::gen::inRange<std::uint32_t>(1, most + 1);
}

rc::Gen<std::uint32_t> fits_on_a_rank(const LengthLimits& limits) {
  return up_to(std::min(limits.most_tokens, limits.capacity_tokens));
}

rc::Gen<Lengths> uniform(const LengthLimits& limits) {
  return rc::gen::container<Lengths>(up_to(limits.most_tokens));
}

/// A sum of four draws, as an exponent, is about normal.
rc::Gen<Lengths> lognormal(const LengthLimits& limits) {
  const auto draw = rc::gen::inRange(0, 65);
  return rc::gen::container<Lengths>(rc::gen::map(
      rc::gen::tuple(draw, draw, draw, draw),
      [limits](const std::tuple<int, int, int, int>& drawn) {
        const auto [a, b, c, d] = drawn;
        const double length = std::exp2((a + b + c + d) / 11.7) / 8192 * limits.capacity_tokens;
        return static_cast<std::uint32_t>(std::clamp<double>(length, 1, limits.most_tokens));
      }));
}

rc::Gen<Lengths> two_point(const LengthLimits& limits) {
  return rc::gen::mapcat(
      rc::gen::pair(up_to(limits.most_tokens), fits_on_a_rank(limits)),
      [](const std::pair<std::uint32_t, std::uint32_t>& points) {
        return rc::gen::container<Lengths>(rc::gen::element(points.first, points.second));
      });
}

rc::Gen<Lengths> all_equal(const LengthLimits& limits) {
  return rc::gen::mapcat(up_to(limits.most_tokens), [](std::uint32_t length) {
    return rc::gen::container<Lengths>(rc::gen::just(length));
  });
}

rc::Gen<Lengths> giant_and_dust(const LengthLimits& limits) {
  const std::uint32_t dust = std::min(limits.most_tokens, limits.capacity_tokens / 14 + 1);
  return rc::gen::map(rc::gen::container<Lengths>(up_to(dust)),
                      [most = limits.most_tokens](Lengths drawn) {
                        drawn.push_back(most);
                        return drawn;
                      });
}

rc::Gen<Lengths> around_edges(const LengthLimits& limits) {
  const auto edge = rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(0, 20), [](int power) { return std::int64_t{1} << power; }),
      rc::gen::map(rc::gen::inRange<std::int64_t>(1, 12),
                   [limits](std::int64_t n) { return n * limits.capacity_tokens; }));
  return rc::gen::container<Lengths>(
      rc::gen::map(rc::gen::pair(edge, rc::gen::inRange<std::int64_t>(-1, 2)),
                   [limits](const std::pair<std::int64_t, std::int64_t>& drawn) {
                     return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                         drawn.first + drawn.second, 1, limits.most_tokens));
                   }));
}

rc::Gen<Lengths> hard_for_lpt(const LengthLimits& limits) {
  const std::uint32_t ranks = limits.ranks;
  const std::uint32_t most = limits.most_tokens;
  return rc::gen::map(up_to(std::max(most / (2 * ranks), 1U)), [ranks, most](std::uint32_t unit) {
    Lengths lengths(3, std::min(ranks * unit, most));
    for (std::uint32_t units = ranks + 1; units < 2 * ranks; ++units) {
      lengths.insert(lengths.end(), 2, std::min(units * unit, most));
    }
    return lengths;
  });
}

constexpr LengthGenerator kLengthGenerators[] = {
    {"uniform", uniform},
    {"lognormal", lognormal},
    {"two_point", two_point},
    {"all_equal", all_equal},
    {"giant_and_dust", giant_and_dust},
    {"around_edges", around_edges},
    {"hard_for_lpt", hard_for_lpt},
};

}  // namespace

std::span<const LengthGenerator> length_generators() {
  return kLengthGenerators;
}

rc::Gen<Lengths> any_lengths(const LengthLimits& limits) {
  return rc::gen::mapcat(
      rc::gen::elementOf(std::vector(std::begin(kLengthGenerators), std::end(kLengthGenerators))),
      [limits](const LengthGenerator& generator) { return generator.lengths(limits); });
}

std::vector<model::PlanSample> shuffled(std::vector<model::PlanSample> samples,
                                        std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = samples.size(); i > 1; --i) {
    std::swap(samples[i - 1], samples[random.below(i)]);
  }
  return samples;
}

}  // namespace batchloom::planning
