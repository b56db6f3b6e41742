// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/gang_placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/planning/builtin_costs.h"

namespace batchloom::planning {
namespace {

struct World {
  HdpCosts costs;
  RankLevels levels;
  HdpProblem problem;

  std::optional<GangPlacement> place(const PlacementRule& rule) const {
    return place_gangs(costs, levels, problem, rule);
  }
};

constexpr std::uint64_t kAnyTime = std::uint64_t{1} << 50;

/// Islands of so many ranks; 0 for none.
model::Topology topology_of(std::uint32_t ranks, std::uint32_t island) {
  std::vector<model::Level> levels;
  if (island > 0)
    levels = {{"island", island, 400'000'000'000, 0}, {"all", ranks * island, 50'000'000'000, 0}};
  return model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}, levels).value();
}

World world_of(std::uint32_t ranks, const std::vector<std::uint32_t>& tokens,
               std::uint32_t island = 0) {
  HdpCosts costs =
      HdpCosts::create(builtin_cost_model("h200-llama7b").value(), {.ranks = ranks}).value();
  HdpProblem problem =
      make_problem(costs, tokens, [](std::uint32_t row) { return std::to_string(row); }).value();
  return {std::move(costs), RankLevels(topology_of(ranks, island)), std::move(problem)};
}

/// Every gang begins when all of its ranks are free, and takes what it costs.
void check_gangs(const World& world, const GangPlacement& placement) {
  RC_ASSERT(placement.gangs.size() == world.problem.longs.size());
  std::vector<std::uint64_t> free_ns(world.costs.shape().ranks, 0);
  for (const PlacedGang& gang : placement.gangs) {
    const DegreeRange degrees = world.costs.degrees(gang.tokens);
    RC_ASSERT(gang.degree() >= degrees.min);
    RC_ASSERT(gang.degree() <= degrees.max);
    RC_ASSERT(gang.time_ns == world.costs.gang_ns(world.costs.attention_ns(gang.tokens),
                                                  gang.tokens, gang.degree()));
    std::uint32_t before = UINT32_MAX;
    for (std::uint32_t i = gang.members.begin; i < gang.members.end; ++i) {
      const std::uint32_t rank = placement.members.at(i).value;
      RC_ASSERT(before == UINT32_MAX || rank > before);
      before = rank;
      RC_ASSERT(free_ns.at(rank) <= gang.start_ns);
      free_ns[rank] = gang.start_ns + gang.time_ns;
    }
  }
  for (std::uint32_t rank = 0; rank < free_ns.size(); ++rank) {
    RC_ASSERT(free_ns[rank] <= placement.end_ns[rank]);
  }
}

RC_GTEST_PROP(GangPlacement, IsASchedule, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto length = rc::gen::inRange<std::uint32_t>(1, ranks * 8192 + 1);
  const World world = world_of(ranks, *rc::gen::container<std::vector<std::uint32_t>>(length),
                               *rc::gen::inRange<std::uint32_t>(0, 10));
  const auto shelves = *rc::gen::inRange<std::uint32_t>(0, 4);
  // High enough for any number of samples one after the other.
  const auto placement = world.place({kAnyTime, shelves, *rc::gen::arbitrary<bool>()});
  if (shelves == 0) RC_ASSERT(placement.has_value());
  if (placement) check_gangs(world, *placement);
}

TEST(GangPlacement, KeepsItsTargetOrFails) {
  const World world = world_of(8, {60'000, 50'000, 40'000, 30'000, 20'000});
  const std::uint64_t bound = world.problem.lower_bound_ns();
  EXPECT_FALSE(world.place({bound / 2, 0}).has_value());
  for (std::uint64_t target = bound; target < 4 * bound; target += bound / 8) {
    const auto placement = world.place({target, 0});
    if (!placement) continue;
    for (const std::uint64_t end : placement->end_ns) EXPECT_LE(end, target);
  }
}

TEST(GangPlacement, AShelfEndsNearlyTogether) {
  const World world = world_of(16, {31'000, 30'800, 30'600, 30'400});
  const auto placement = world.place({kAnyTime, 1});
  ASSERT_TRUE(placement.has_value());
  ASSERT_EQ(placement->gangs.size(), 4U);
  std::uint64_t last = 0;
  for (const PlacedGang& gang : placement->gangs) {
    EXPECT_EQ(gang.start_ns, 0U);
    last = std::max(last, gang.time_ns);
  }
  std::uint64_t used = 0;
  for (const std::uint64_t end : placement->end_ns) used += end;
  EXPECT_GE(used * 100, last * 16 * 97);
}

TEST(GangPlacement, TakesNoShelfThatLeavesRanksIdle) {
  // They may run on 18 ranks together, but the short one on 2 at most, which then wait.
  const World world = world_of(16, {40'000, 30'000, 8'200});
  EXPECT_FALSE(world.place({kAnyTime, 1}).has_value());
}

TEST(GangPlacement, WaitsForAllWhereNoGroupIsWideEnough) {
  // The first may run on half of the ranks, and then nobody else finds all of them together.
  const World world = world_of(4, {5 * 8192, 4 * 8192, 4 * 8192});
  const auto placement = world.place({kAnyTime, 0});
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->gangs[1].degree(), 4U);
  EXPECT_EQ(placement->gangs[2].degree(), 4U);
  EXPECT_GE(placement->gangs[1].start_ns, placement->gangs[0].time_ns);
}

std::uint32_t gangs_apart(const World& world, const GangPlacement& placement) {
  std::uint32_t apart = 0;
  for (const PlacedGang& gang : placement.gangs) {
    const std::uint32_t first = placement.members[gang.members.begin].value;
    const std::uint32_t last = placement.members[gang.members.end - 1].value;
    const bool in_one = world.levels.joining(first, last) == 0;
    if (!in_one && gang.degree() <= world.levels.widest(0)) ++apart;
  }
  return apart;
}

TEST(GangPlacement, IslandsFirst) {
  // Gangs of five leave three ranks of each island, together enough for six gangs of four; but one
  // after the other, gangs of five and of four fit into an island each.
  std::vector<std::uint32_t> tokens(8, 40'000);
  tokens.insert(tokens.end(), 8, 30'000);
  const World world = world_of(64, tokens, 8);
  const auto time_ns = [&](std::uint32_t count, std::uint32_t degree) {
    return world.costs.gang_ns(world.costs.attention_ns(count), count, degree);
  };
  const std::uint64_t both = time_ns(40'000, 5) + time_ns(30'000, 4);
  const auto placement = world.place({.target_ns = both, .islands_first = true});
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(gangs_apart(world, *placement), 0U);
  const auto any = world.place({.target_ns = both, .islands_first = false});
  ASSERT_TRUE(any.has_value());
  EXPECT_GE(gangs_apart(world, *any), 6U);
  const std::uint64_t target = time_ns(40'000, 5);
  tokens.assign(16, 40'000);
  const World too_many = world_of(80, tokens, 8);
  const auto apart = too_many.place({.target_ns = target, .islands_first = true});
  ASSERT_TRUE(apart.has_value()) << "ten find an island, the others lie apart";
  EXPECT_EQ(gangs_apart(too_many, *apart), 6U);
}

TEST(GangPlacement, SlowLinksBetweenIslandsCount) {
  const std::vector<std::uint32_t> tokens(16, 40'000);
  World world = world_of(80, tokens, 8);
  world.costs =
      HdpCosts::create(builtin_cost_model("h200-llama7b").value(),
                       {.ranks = 80, .links = {{8, 400'000'000'000, 0}, {80, 1'000'000'000, 0}}})
          .value();
  world.problem = make_problem(world.costs, tokens, [](std::uint32_t row) {
                    return std::to_string(row);
                  }).value();
  const std::uint64_t attention = world.costs.attention_ns(40'000);
  const std::uint64_t inside = world.costs.gang_ns(attention, 40'000, 5, 0);
  const std::uint64_t apart = world.costs.gang_ns(attention, 40'000, 5, 1);
  ASSERT_LT(inside, apart);
  EXPECT_FALSE(world.place({.target_ns = inside}).has_value()) << "six would lie apart";
  const auto placement = world.place({.target_ns = 2 * inside});
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(gangs_apart(world, *placement), 0U);
}

}  // namespace
}  // namespace batchloom::planning
