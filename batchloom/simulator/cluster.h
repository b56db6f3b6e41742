// SPDX-License-Identifier: Apache-2.0
// The cluster of a what-if: docs/formats/cluster.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/model/topology.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::simulator {

struct Cluster {
  model::Topology topology;
  planning::CostModel costs;
  std::uint32_t capacity_tokens = 8192;   ///< Of a micro-batch on one rank.
  std::uint32_t min_share_tokens = 4096;  ///< The smallest share of a ring.
  bool offload = false;                   ///< Whether activations may go to the host.
};

/// The file that stands for the built-in cluster: 512 ranks, 8 of them joined at 400 GB/s, 50 GB/s
/// beyond; costs h200-llama7b. Figures of ordinary hardware, not of a cluster that was measured.
std::string_view default_cluster_text();

/// `name` stands in messages. A cost model in a file of its own is looked for below `folder`.
/// `invalid`, naming line and key: text that is no TOML, keys that are missing, unknown or out of
/// range, a topology that cannot be, a cost model that does not exist or cannot be read.
Result<Cluster> parse_cluster(std::string_view text, std::string_view name,
                              std::string_view folder = ".");

/// The cluster in a file, or the built-in one where `path` is empty. Errors: those of InputFile and
/// of parse_cluster().
Result<Cluster> read_cluster(const std::string& path);

/// A cost model by its built-in name, or from a file where `name` ends in ".toml", below `folder`
/// unless it begins with "/". `invalid` or as InputFile.
Result<planning::CostModel> find_cost_model(std::string_view name, std::string_view folder = ".");

}  // namespace batchloom::simulator
