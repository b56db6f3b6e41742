// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/planning/toml_table.h"
#include "batchloom/simulator/input_file.h"

namespace batchloom::simulator {
namespace {

using planning::TomlTable;

constexpr std::size_t kSettingsMaxBytes = std::size_t{4} << 20;

constexpr std::string_view kDefaultCluster = R"(axes = "dp=2 cp=256"        # outermost first
capacity_tokens = 8192      # of a micro-batch on one rank
min_share_tokens = 4096     # the smallest share of a sample that lies on several ranks
offload = false             # whether activations may be copied to the host
cost_model = "h200-llama7b"

[[levels]]                  # innermost first
name = "node"
ranks = 8                   # in one group
bandwidth = "400GB/s"       # per rank and direction
latency = "2us"

[[levels]]
name = "cluster"
ranks = 512
bandwidth = "50GB/s"
latency = "5us"
)";

struct RateUnit {
  std::string_view name;
  std::uint64_t size = 1;
};
constexpr RateUnit kRateUnits[] = {{"B/s", 1},
                                   {"KB/s", 1'000},
                                   {"MB/s", 1'000'000},
                                   {"GB/s", 1'000'000'000},
                                   {"TB/s", 1'000'000'000'000},
                                   {"Mbit/s", 125'000},
                                   {"Gbit/s", 125'000'000}};
constexpr RateUnit kLatencyUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}};

/// A decimal like "12.5" followed at once by one of `units`, in units of 1, rounded down.
std::optional<std::uint64_t> parse_measure(std::string_view text, std::span<const RateUnit> units) {
  constexpr std::uint64_t kWholeMax = 1'000'000'000;
  std::uint64_t whole = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > kWholeMax) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  std::string_view decimals;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = text.substr(0, text.find_first_not_of("0123456789"));
    if (decimals.empty()) return std::nullopt;
    text.remove_prefix(decimals.size());
  }
  const auto unit = std::ranges::find(units, text, &RateUnit::name);
  if (unit == units.end()) return std::nullopt;
  if (whole > INT64_MAX / unit->size - 1) return std::nullopt;
  std::uint64_t amount = whole * unit->size;
  std::uint64_t place = unit->size;
  for (const char digit : decimals) {
    place /= 10;
    amount += place * static_cast<std::uint64_t>(digit - '0');
  }
  return amount;
}

Result<std::uint64_t> read_measure(const TomlTable& table, std::string_view key,
                                   std::span<const RateUnit> units, std::string_view like) {
  BL_ASSIGN_OR_RETURN(const std::string text, table.text(key));
  const std::optional<std::uint64_t> amount = parse_measure(text, units);
  if (amount) return *amount;
  std::vector<std::string_view> names;
  for (const RateUnit& unit : units) names.push_back(unit.name);
  return table.wrong(key, fmt::format("is '{}'; it must be like {}: a number and one of {}", text,
                                      like, fmt::join(names, ", ")));
}

Result<std::uint32_t> read_count(const TomlTable& table, std::string_view key,
                                 std::optional<std::uint64_t> fallback = {},
                                 std::uint64_t most = UINT32_MAX) {
  BL_ASSIGN_OR_RETURN(const std::uint64_t count,
                      table.number(key, {.least = 1, .most = most}, fallback));
  return static_cast<std::uint32_t>(count);
}

Result<model::Level> read_level(const TomlTable& table) {
  model::Level level;
  BL_ASSIGN_OR_RETURN(level.name, table.text("name"));
  if (level.name.empty()) return table.wrong("name", "is empty; results are told by it");
  BL_ASSIGN_OR_RETURN(level.ranks_per_group, read_count(table, "ranks"));
  BL_ASSIGN_OR_RETURN(level.bandwidth_bytes_per_s,
                      read_measure(table, "bandwidth", kRateUnits, "\"50GB/s\""));
  BL_ASSIGN_OR_RETURN(level.latency_ns, read_measure(table, "latency", kLatencyUnits, "\"5us\""));
  BL_RETURN_IF_ERROR(table.finish());
  return level;
}

Result<model::Topology> read_topology(const TomlTable& table) {
  BL_ASSIGN_OR_RETURN(const std::string axes, table.text("axes"));
  const Result<model::Topology> bare = model::Topology::parse(axes);
  if (!bare.is_ok()) {
    return table.wrong("axes", fmt::format("cannot be: {}", bare.status().message()));
  }
  std::vector<model::Level> levels;
  BL_ASSIGN_OR_RETURN(const std::vector<TomlTable> tables, table.tables("levels"));
  for (const TomlTable& level : tables) {
    BL_ASSIGN_OR_RETURN(model::Level read, read_level(level));
    if (std::ranges::find(levels, read.name, &model::Level::name) != levels.end()) {
      return level.wrong(
          "name", fmt::format("is '{}', as that of another level; give each its own", read.name));
    }
    levels.push_back(std::move(read));
  }
  if (bare->hdp_size() > planning::kMaxHdpRanks) {
    return table.wrong("axes", fmt::format("has {} HDP ranks, and the most is {}", bare->hdp_size(),
                                           planning::kMaxHdpRanks));
  }
  if (levels.empty() || levels.back().ranks_per_group < bare->world_size()) {
    return table.wrong(
        "levels", fmt::format("must end with one that joins all {} ranks", bare->world_size()));
  }
  Result<model::Topology> whole = model::Topology::create(bare->axes(), std::move(levels));
  if (!whole.is_ok()) {
    return table.wrong("levels", fmt::format("cannot be: {}", whole.status().message()));
  }
  return whole;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

std::string_view default_cluster_text() {
  return kDefaultCluster;
}

Result<planning::CostModel> find_cost_model(std::string_view name, std::string_view folder) {
  if (!name.ends_with(".toml")) return planning::builtin_cost_model(name);
  const std::string path = name.starts_with('/') || folder == "."
                               ? std::string(name)
                               : fmt::format("{}/{}", folder, name);
  BL_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kSettingsMaxBytes));
  return planning::parse_cost_model(text, path);
}

Result<Cluster> parse_cluster(std::string_view text, std::string_view name,
                              std::string_view folder) {
  BL_ASSIGN_OR_RETURN(const TomlTable table, TomlTable::parse(text, name));
  Cluster cluster;
  BL_ASSIGN_OR_RETURN(cluster.topology, read_topology(table));
  BL_ASSIGN_OR_RETURN(
      cluster.capacity_tokens,
      read_count(table, "capacity_tokens", cluster.capacity_tokens, planning::kMaxCapacityTokens));
  BL_ASSIGN_OR_RETURN(cluster.min_share_tokens,
                      read_count(table, "min_share_tokens", cluster.min_share_tokens));
  BL_ASSIGN_OR_RETURN(cluster.offload, table.flag("offload", cluster.offload));
  BL_ASSIGN_OR_RETURN(const std::string costs, table.text("cost_model"));
  BL_RETURN_IF_ERROR(table.finish());
  Result<planning::CostModel> found = find_cost_model(costs, folder);
  if (!found.is_ok()) {
    return Status(found.status().kind(),
                  std::string(table.wrong("cost_model", found.status().message()).message()));
  }
  cluster.costs = *std::move(found);
  return cluster;
}

Result<Cluster> read_cluster(const std::string& path) {
  if (path.empty()) return parse_cluster(kDefaultCluster, "the built-in cluster");
  BL_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kSettingsMaxBytes));
  return parse_cluster(text, path, folder_of(path));
}

}  // namespace batchloom::simulator
