// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_config.h"

#include <algorithm>

#include "batchloom/planning/graph_layout.h"
#include "batchloom/planning/strategies.h"

namespace batchloom::control {

bool operator==(const TextModel& a, const TextModel& b) {
  if (a.file != b.file || (a.content == nullptr) != (b.content == nullptr)) return false;
  return a.content == nullptr || a.content->digest() == b.content->digest();
}

bool takes_part(const SourceConfig& source, const RunConfig& run) {
  const auto share = source.split.find(run.split);
  return share != source.split.end() && share->second != 0;
}

bool has_pictures(const PipelineConfig& config) {
  return std::ranges::any_of(config.sources,
                             [](const SourceConfig& source) { return !source.picture.empty(); });
}

bool is_divided(const SourceConfig& source) {
  return std::ranges::count_if(source.split, [](const auto& share) { return share.second != 0; }) >
         1;
}

std::uint32_t ranks_of_a_part(const PipelineConfig& config) {
  const model::Topology& topology = config.topology.axes;
  return planning::ranks_of_a_sample(topology, planning::spread_of(config.balance.strategy));
}

}  // namespace batchloom::control
