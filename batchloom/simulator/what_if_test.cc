// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace batchloom::simulator {
namespace {

using Lengths = std::vector<std::uint32_t>;

/// Eight ranks in two nodes.
Cluster small_cluster() {
  return parse_cluster(R"(axes = "dp=2 cp=4"
cost_model = "h200-llama7b"
[[levels]]
name = "node"
ranks = 4
bandwidth = "400GB/s"
latency = "2us"
[[levels]]
name = "cluster"
ranks = 8
bandwidth = "50GB/s"
latency = "5us"
)",
                       "small")
      .value();
}

const LengthsByStep kSteps = {Lengths(80, 3'000), {30'000, 5'000, 5'000, 8'000, 700}};
constexpr WhatIfOptions kOptions = {.context_tokens = 32'768,
                                    .times = {},
                                    .groups = GroupRule::kContext,
                                    .rings = RingRule::kByLinks,
                                    .timeline = true};

TEST(WhatIf, EveryStrategyReplaysTheSameSteps) {
  const WhatIf result =
      what_if(small_cluster(), kSteps, {"lpt", "two_level", "hdp"}, kOptions).value();
  ASSERT_EQ(result.strategies.size(), 3u);
  ASSERT_EQ(result.bounds_ns.size(), 2u);
  for (const StrategyOutcome& strategy : result.strategies) {
    EXPECT_FALSE(strategy.failure);
    ASSERT_EQ(strategy.steps.size(), 2u);
    EXPECT_EQ(strategy.steps[0].sample_tokens, 240'000u);
    EXPECT_EQ(strategy.steps[1].sample_tokens, 48'700u);
    for (std::size_t step = 0; step < 2; ++step) {
      EXPECT_GE(strategy.steps[step].step_ns, result.bounds_ns[step]);
    }
    EXPECT_EQ(strategy.total_ns(), strategy.steps[0].step_ns + strategy.steps[1].step_ns);
  }
  EXPECT_EQ(result.find("two_level"), &result.strategies[1]);
  EXPECT_EQ(result.find("kk"), nullptr);
  EXPECT_EQ(result.total_bound_ns(), result.bounds_ns[0] + result.bounds_ns[1]);
}

TEST(WhatIf, ATimelineIsTheFirstStepsRankByRank) {
  const WhatIf result = what_if(small_cluster(), kSteps, {"hdp"}, kOptions).value();
  const StrategyOutcome& ours = result.strategies.front();
  std::vector<std::uint64_t> busy_until(8, 0), busy_ns(8, 0);
  for (const RankSpan& span : ours.timeline) {
    EXPECT_GE(span.begin_ns, busy_until[span.rank]) << "one thing at a time";
    EXPECT_GE(span.end_ns - span.begin_ns, span.compute_ns);
    busy_until[span.rank] = span.end_ns;
    busy_ns[span.rank] += span.end_ns - span.begin_ns;
  }
  EXPECT_EQ(std::ranges::max(busy_until), ours.steps.front().step_ns);
  std::uint64_t all_ns = 0;
  for (const std::uint64_t busy : busy_ns) all_ns += busy;
  EXPECT_EQ(all_ns, ours.steps.front().busy.total_ns());
  WhatIfOptions without = kOptions;
  without.timeline = false;
  EXPECT_TRUE(what_if(small_cluster(), kSteps, {"hdp"}, without)
                  .value()
                  .strategies.front()
                  .timeline.empty());
}

TEST(WhatIf, AStrategyThatCannotPlanSaysWhy) {
  // Four ranks of 8,192 tokens make a group that cannot hold it; eight of hdp can.
  const LengthsByStep steps = {{3'000}, {40'000}};
  const WhatIf result = what_if(small_cluster(), steps, {"lpt", "hdp"}, kOptions).value();
  const StrategyOutcome& grouped = result.strategies.front();
  ASSERT_TRUE(grouped.failure);
  EXPECT_TRUE(grouped.failure->message().starts_with("lpt, step 1: sample "));
  EXPECT_TRUE(grouped.steps.empty());
  EXPECT_FALSE(result.strategies.back().failure);
}

TEST(WhatIf, WhatCannotBeAskedIsNamed) {
  const auto unknown = what_if(small_cluster(), kSteps, {"lpt", "best"}, kOptions);
  ASSERT_TRUE(unknown.is(ErrorKind::kInvalid));
  EXPECT_TRUE(unknown.status().message().find("best") != std::string::npos);
  EXPECT_TRUE(what_if(small_cluster(), {}, {"hdp"}, kOptions).is(ErrorKind::kInvalid));
  EXPECT_TRUE(what_if(small_cluster(), {{5}, {}}, {"hdp"}, kOptions).is(ErrorKind::kInvalid));
  const auto giant = what_if(small_cluster(), {{5}, {4'000'000'000}}, {"hdp"}, kOptions);
  ASSERT_TRUE(giant.is(ErrorKind::kInvalid));
  EXPECT_TRUE(giant.status().message().starts_with("hdp, step 1: "));
}

WhatIf outcome_of(const std::vector<std::pair<std::string, std::uint64_t>>& times) {
  WhatIf outcome;
  for (const auto& [name, step_ns] : times) {
    StrategyOutcome& strategy = outcome.strategies.emplace_back(StrategyOutcome{.strategy = name});
    strategy.steps.emplace_back().step_ns = step_ns;
  }
  return outcome;
}

TEST(WhatIf, TheLadderMustFall) {
  const model::Topology flat = model::Topology::parse("dp=8").value();
  const model::Topology staged = model::Topology::parse("pp=2 dp=8").value();
  const WhatIf good =
      outcome_of({{"hdp", 1}, {"dp_balance", 2}, {"naive_hdp", 3}, {"kk", 9}, {"static_cp", 4}});
  EXPECT_TRUE(check_ladder(good, flat).is_ok());
  EXPECT_EQ(check_ladder(good, staged).message(),
            "the order of strategies needs pp_balance, which was not replayed");
  const WhatIf equal =
      outcome_of({{"static_cp", 4}, {"naive_hdp", 3}, {"pp_balance", 2}, {"hdp", 2}});
  EXPECT_EQ(
      check_ladder(equal, staged).message(),
      "hdp takes 2 ns for these steps, which is not less than the 2 ns of pp_balance: on this "
      "cluster they do not show the published order");
  EXPECT_TRUE(check_ladder(equal, staged).is(ErrorKind::kInvalid)) << "no defect of ours";
  const WhatIf turned =
      outcome_of({{"static_cp", 4}, {"naive_hdp", 5}, {"dp_balance", 2}, {"hdp", 1}});
  EXPECT_TRUE(check_ladder(turned, flat).message().starts_with("naive_hdp takes 5 ns"));
  WhatIf failed = good;
  failed.strategies.back().failure = Status::invalid("does not fit");
  EXPECT_EQ(check_ladder(failed, flat).message(), "does not fit");
}

/// How many of a cluster's and the options' settings differ.
int changes_of(const Variant& variant, const Cluster& cluster) {
  const Cluster& changed = variant.cluster;
  return int{changed.topology != cluster.topology} + int{changed.costs != cluster.costs} +
         int{changed.capacity_tokens != cluster.capacity_tokens} +
         int{changed.min_share_tokens != cluster.min_share_tokens} +
         int{changed.offload != cluster.offload} + int{variant.options.groups != kOptions.groups} +
         int{variant.options.rings != kOptions.rings} +
         int{variant.options.times.links != kOptions.times.links} +
         int{variant.options.times.overlap_percent != kOptions.times.overlap_percent} +
         int{variant.options.times.backward_bytes_factor != kOptions.times.backward_bytes_factor};
}

TEST(WhatIf, AVariantChangesOneAssumption) {
  const Cluster cluster = small_cluster();
  const std::vector<Variant> variants = variants_of(cluster, kOptions);
  EXPECT_EQ(changes_of(variants.front(), cluster), 0);
  std::set<std::string> names;
  for (const Variant& variant : variants) {
    EXPECT_TRUE(names.insert(variant.assumption + " " + variant.value).second);
    EXPECT_FALSE(variant.options.timeline);
    if (&variant != &variants.front()) {
      EXPECT_EQ(changes_of(variant, cluster), 1) << variant.assumption;
    }
  }
  for (const char* name :
       {"bandwidth of cluster 25 GB/s", "bandwidth of node 800 GB/s", "latency 1 us, 2.5 us",
        "bytes of backward 4 x forward", "computing half as fast", "capacity 16384 tokens",
        "overlap of hops 0 % of computing", "rings chosen without regard to links",
        "pipeline stages 2, with pp_balance"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(WhatIf, SlowerLinksAndComputingTakeLonger) {
  const Cluster cluster = small_cluster();
  std::map<std::string, std::uint64_t> times;
  for (const Variant& variant : variants_of(cluster, kOptions)) {
    const WhatIf result = what_if(variant.cluster, kSteps, {"lpt"}, variant.options).value();
    times[variant.assumption + " " + variant.value] = result.strategies.front().total_ns();
  }
  const std::uint64_t given = times.at("as given ");
  EXPECT_GT(times.at("computing half as fast"), given);
  EXPECT_LT(times.at("computing twice as fast"), given);
  EXPECT_GE(times.at("bandwidth of node 200 GB/s"), given);
  EXPECT_LE(times.at("links infinitely fast"), times.at("bandwidth of node 800 GB/s"));
  EXPECT_GE(times.at("bytes of backward 4 x forward"), given);
  EXPECT_GE(times.at("overlap of hops 50 % of computing"), given);
  EXPECT_GE(times.at("overlap of hops 0 % of computing"),
            times.at("overlap of hops 50 % of computing"));
}

TEST(WhatIf, StagesTakeRanksFromOtherAxes) {
  const auto stages_of = [](const std::string& axes) {
    Cluster cluster = small_cluster();
    cluster.topology =
        model::Topology::create(model::Topology::parse(axes)->axes(), cluster.topology.levels())
            .value();
    std::vector<std::string> found;
    for (const Variant& variant : variants_of(cluster, kOptions)) {
      if (variant.assumption != "pipeline stages") continue;
      EXPECT_EQ(variant.cluster.topology.world_size(), 8u);
      found.push_back(to_string(variant.cluster.topology) + ": " +
                      variant.strategies({"dp_balance", "hdp"}).front());
    }
    return found;
  };
  using Found = std::vector<std::string>;
  EXPECT_EQ(stages_of("dp=2 cp=4"), (Found{"pp=2 dp=1 cp=4: pp_balance"}));
  EXPECT_EQ(stages_of("dp=1 cp=8"), (Found{"pp=2 dp=1 cp=4: pp_balance"}));
  EXPECT_EQ(stages_of("cp=8"), (Found{"pp=2 cp=4: pp_balance"}));
  EXPECT_EQ(stages_of("pp=2 dp=4"), (Found{"pp=1 dp=8: dp_balance", "pp=4 dp=2: dp_balance"}))
      << "with stages before and after, the strategies are those that were asked for";
  EXPECT_EQ(stages_of("dp=1 tp=8"), Found{});
}

TEST(WhatIf, RingsThatNobodyChoseByLinksCrossSlowerOnes) {
  // On nodes of four ranks, rings of two or three: who looks at links keeps each of them at home.
  const LengthsByStep steps = {{12'500, 12'500, 12'500, 12'500, 9'000, 9'000, 2'000, 2'000}};
  WhatIfOptions blind = kOptions;
  blind.rings = RingRule::kAnyRanks;
  const auto sent_between_nodes = [&](const WhatIfOptions& options) {
    const WhatIf result = what_if(small_cluster(), steps, {"hdp"}, options).value();
    EXPECT_EQ(result.strategies.front().steps.front().bytes_by_level.size(), 2u);
    return result.strategies.front().steps.front().bytes_by_level.back();
  };
  EXPECT_GT(sent_between_nodes(blind), sent_between_nodes(kOptions));
}

/// hdp's bound is over its own plans; by equation 3 others take fewer ranks.
TEST(WhatIf, WithActivationsOnTheHostTheBalancedRuleCanBeatTheBound) {
  Cluster cluster = small_cluster();
  cluster.topology = model::Topology::parse("dp=4").value();
  cluster.offload = true;
  const LengthsByStep steps = {{26'145, 25'068, 26'145, 25'068}};
  const WhatIf with = what_if(cluster, steps, {"dp_balance", "hdp"}, kOptions).value();
  EXPECT_LT(with.find("dp_balance")->total_ns(), with.total_bound_ns());
  EXPECT_GE(with.find("hdp")->total_ns(), with.total_bound_ns());
  cluster.offload = false;
  const WhatIf without = what_if(cluster, steps, {"dp_balance"}, kOptions).value();
  EXPECT_GE(without.find("dp_balance")->total_ns(), without.total_bound_ns());
}

/// And others may cut a sample finer.
TEST(WhatIf, StaticGroupsWithFastLinksBeatTheBoundOnShortSamples) {
  WhatIfOptions fast = kOptions;
  fast.context_tokens = 65'536;
  fast.times.links = false;
  const WhatIf result = what_if(small_cluster(), {{8'000}}, {"static_cp", "hdp"}, fast).value();
  const std::uint64_t bound = result.total_bound_ns();
  EXPECT_LT(result.find("static_cp")->total_ns(), bound);
  EXPECT_GE(result.find("hdp")->total_ns(), bound);
}

}  // namespace
}  // namespace batchloom::simulator
