// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"

namespace batchloom::simulator {
namespace {

const std::string kSmallCluster = R"(axes = "pp=2 dp=4 cp=2"
cost_model = "bytescale-fig6"
[[levels]]
name = "island"
ranks = 4
bandwidth = "12.5GB/s"
latency = "1.5us"
[[levels]]
name = "all"
ranks = 16
bandwidth = "400Gbit/s"
latency = "0ms"
)";

TEST(Cluster, TheBuiltInOneIsAFile) {
  const Cluster cluster = read_cluster("").value();
  EXPECT_EQ(cluster.topology.hdp_size(), 512u);
  EXPECT_EQ(cluster.costs.name, "h200-llama7b");
  ASSERT_EQ(cluster.topology.levels().size(), 2u);
  EXPECT_EQ(cluster.topology.levels()[0], (model::Level{"node", 8, 400'000'000'000, 2'000}));
  EXPECT_EQ(cluster.topology.levels()[1], (model::Level{"cluster", 512, 50'000'000'000, 5'000}));
  EXPECT_EQ(cluster.capacity_tokens * cluster.topology.extent(model::Axis::kCp), 2u << 20);
}

TEST(Cluster, WhatAFileLeavesOutIsAsUsual) {
  const Cluster cluster = parse_cluster(kSmallCluster, "small.toml").value();
  EXPECT_EQ(to_string(cluster.topology), "pp=2 dp=4 cp=2");
  EXPECT_EQ(cluster.topology.levels()[0].bandwidth_bytes_per_s, 12'500'000'000u);
  EXPECT_EQ(cluster.topology.levels()[0].latency_ns, 1'500u);
  EXPECT_EQ(cluster.topology.levels()[1].bandwidth_bytes_per_s, 50'000'000'000u);
  EXPECT_EQ(cluster.topology.levels()[1].latency_ns, 0u);
  EXPECT_EQ(cluster.capacity_tokens, 8192u);
  EXPECT_EQ(cluster.min_share_tokens, 4096u);
  EXPECT_FALSE(cluster.offload);
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kSmallCluster;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Cluster, WhatIsWrongIsNamedByLineAndKey) {
  const std::string units = "a number and one of B/s, KB/s, MB/s, GB/s, TB/s, Mbit/s, Gbit/s";
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: 'axes' is missing"},
      {"axes", "line 1: "},
      {with("pp=2", "ep=2"), "line 1: 'axes' cannot be: "},
      {with("bytescale-fig6", "gpt"), "line 2: 'cost_model' no cost model is called 'gpt'"},
      {with("bytescale-fig6", "no.toml"), "line 2: 'cost_model' folder/no.toml: there is no such"},
      {with("12.5GB/s", "12.5"),
       "line 6: 'bandwidth' is '12.5'; it must be like \"50GB/s\": " + units},
      {with("12.5GB/s", "12.GB/s"), "'bandwidth' is '12.GB/s'"},
      {with("12.5GB/s", "-1GB/s"), "'bandwidth' is '-1GB/s'"},
      {with("12.5GB/s", "9999999999TB/s"), "'bandwidth' is '9999999999TB/s'"},
      {with("12.5GB/s", "10000000TB/s"), "'bandwidth' is '10000000TB/s'"},
      {with("1.5us", "1.5"), "line 7: 'latency' is '1.5'; it must be like \"5us\""},
      {with("ranks = 16", "ranks = 8"), "'levels' must end with one that joins all 16 ranks"},
      {with("ranks = 4", "ranks = 3"), "'levels' cannot be: "},
      {with("12.5GB/s", "0GB/s"), "'levels' cannot be: "},
      {with("name = \"all\"", "title = \"all\""), "line 8: 'name' is missing"},
      {with("name = \"all\"", "name = \"\""), "line 9: 'name' is empty"},
      {with("name = \"all\"", "name = \"island\""),
       "line 9: 'name' is 'island', as that of another level; give each its own"},
      {with("ranks = 16", "ranks = 16\ngpus = 3"), "line 11: nothing is called 'gpus' here"},
      {"offload = 1\n" + kSmallCluster, "line 1: 'offload' must be true or false"},
      {"capacity_tokens = 0\n" + kSmallCluster, "line 1: 'capacity_tokens' must be a whole number"},
  };
  for (const auto& [text, why] : cases) {
    const Result<Cluster> cluster = parse_cluster(text, "c.toml", "folder");
    ASSERT_FALSE(cluster.is_ok()) << why;
    EXPECT_TRUE(cluster.status().message().starts_with("c.toml: ")) << cluster.status().message();
    EXPECT_TRUE(cluster.status().message().find(why) != std::string::npos)
        << cluster.status().message() << "\nshould say\n"
        << why;
  }
}

TEST(Cluster, ACostModelInAFileLiesBesideIt) {
  const std::string folder = testing::TempDir() + "/cluster_test_folder";
  std::filesystem::create_directories(folder);
  planning::CostModel model = planning::builtin_cost_model("bytescale-fig6").value();
  model.name = "ours";
  std::ofstream(folder + "/costs.toml") << to_toml(model);
  std::ofstream(folder + "/cluster.toml") << with("bytescale-fig6", "costs.toml");
  EXPECT_EQ(read_cluster(folder + "/cluster.toml").value().costs, model);
  std::ofstream(folder + "/cluster.toml") << with("bytescale-fig6", folder + "/costs.toml");
  EXPECT_EQ(read_cluster(folder + "/cluster.toml").value().costs, model);
  EXPECT_TRUE(read_cluster(folder + "/other.toml").is(ErrorKind::kNotFound));
  EXPECT_TRUE(read_cluster(folder).is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::simulator
