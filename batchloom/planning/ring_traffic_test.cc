// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/ring_traffic.h"

#include <gmock/gmock.h>

#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {
namespace {

using testing::ElementsAre;

/// One gang of the given members over 12 ranks in islands of 4, and what it sends.
RingTraffic traffic_of(const std::vector<std::uint32_t>& members, std::uint32_t tokens) {
  const auto topology = model::Topology::create({{.axis = model::Axis::kDp, .extent = 12}},
                                                {{"island", 4, 2000, 0}, {"all", 12, 1000, 0}})
                            .value();
  PlanDraft draft;
  for (const std::uint32_t rank : members) draft.members.emplace_back(rank);
  draft.samples = {model::SampleIndex(0)};
  draft.tasks = {{.members = {0, static_cast<std::uint32_t>(members.size())}, .samples = {0, 1}}};
  const auto plan = make_plan(topology, "test", samples_of(std::vector{tokens}), draft);
  CostModel model;
  model.layers = 10;
  model.kv_bytes_per_token = 5;
  return ring_traffic(plan, RankLevels(topology), model);
}

TEST(RingTraffic, GoesOverEveryEdge) {
  // Three edges in the island; over each, what two of three members hold, in ten layers, forward
  // once and backward twice as much.
  const RingTraffic traffic = traffic_of({0, 1, 3}, 300);
  EXPECT_THAT(traffic.bytes_by_level, ElementsAre(3 * 200 * 5 * 10 * 3, 0));
  EXPECT_EQ(traffic.between_islands(), 0U);
  EXPECT_EQ(traffic.gangs, 1U);
  EXPECT_EQ(traffic.gangs_apart, 0U);
}

TEST(RingTraffic, CountsTheEdgesOfIslands) {
  const std::uint64_t edge = 200 * 5 * 10 * 3;
  const RingTraffic apart = traffic_of({2, 3, 4}, 300);
  EXPECT_THAT(apart.bytes_by_level, ElementsAre(edge, 2 * edge));
  EXPECT_EQ(apart.gangs_apart, 1U);
  EXPECT_EQ(apart.least_between_islands, 0U);
}

TEST(RingTraffic, KnowsTheLeastOfWideGangs) {
  const std::uint64_t edge = 500 * 5 * 10 * 3;
  const RingTraffic least = traffic_of({0, 1, 2, 3, 4, 5}, 600);
  EXPECT_EQ(least.between_islands(), 2 * edge);
  EXPECT_EQ(least.least_between_islands, 2 * edge);
  EXPECT_EQ(least.gangs_apart, 0U) << "no island has enough ranks";
  const RingTraffic more = traffic_of({2, 3, 4, 5, 6, 8}, 600);
  EXPECT_EQ(more.between_islands(), 3 * edge);
  EXPECT_EQ(more.least_between_islands, 2 * edge);
}

TEST(RingTraffic, OfOneMemberIsNone) {
  EXPECT_EQ(traffic_of({5}, 300).gangs, 0U);
  EXPECT_THAT(traffic_of({5}, 300).bytes_by_level, ElementsAre(0, 0));
}

}  // namespace
}  // namespace batchloom::planning
