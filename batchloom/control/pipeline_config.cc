// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_config.h"

namespace batchloom::control {

bool takes_part(const SourceConfig& source, const RunConfig& run) {
  const auto share = source.split.find(run.split);
  return share != source.split.end() && share->second != 0;
}

std::uint32_t ranks_of_a_part(const PipelineConfig& config) {
  const model::Topology& topology = config.topology.axes;
  return config.balance.strategy == planning::Balance::kHdp ? topology.hdp_size()
                                                            : topology.extent(model::Axis::kCp);
}

}  // namespace batchloom::control
