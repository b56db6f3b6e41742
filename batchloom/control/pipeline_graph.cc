// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_graph.h"

#include "batchloom/planning/graph_layout.h"

namespace batchloom::control {
namespace {

using planning::Balance;
using planning::Spread;

planning::MixSource mix_source_of(const SourceConfig& source, const RunConfig& run) {
  if (!takes_part(source, run)) {
    planning::MixSource idle;
    idle.name = source.name;
    idle.exhausted = planning::Exhausted::kDrop;
    return idle;
  }
  return {.name = source.name,
          .weight = source.weight,
          .exhausted = source.exhausted,
          .epochs = source.epochs,
          .order = source.order};
}

planning::MixSpec mix_of(const PipelineConfig& config) {
  planning::MixSpec mix{.seed = config.seed,
                        .unit = config.step.unit,
                        .units_per_step = config.step.units,
                        .max_sample_tokens = config.step.max_sample_tokens};
  for (const SourceConfig& source : config.sources) {
    mix.sources.push_back(mix_source_of(source, config.run));
  }
  return mix;
}

}  // namespace

planning::GraphSpec graph_of(const PipelineConfig& config) {
  const BalanceConfig& balance = config.balance;
  planning::GraphSpec graph;
  graph.mix = mix_of(config);
  if (balance.strategy == Balance::kTwoModule) {
    graph.selections.push_back({.modality = planning::Modality::kImage,
                                .distribute = Spread::kWorld,
                                .cost = balance.costs,
                                .balance = balance.strategy});
  }
  graph.selections.push_back({.modality = planning::Modality::kText,
                              .distribute = planning::spread_of(balance.strategy),
                              .cost = balance.costs,
                              .balance = balance.strategy,
                              .options = {.capacity_tokens = config.topology.capacity_tokens,
                                          .min_share_tokens = balance.min_share_tokens,
                                          .offload = balance.offload}});
  return graph;
}

planning::MixtureConfig mixture_of(const PipelineConfig& config, std::uint64_t records) {
  const planning::MixSpec mix = mix_of(config);
  planning::MixtureConfig mixture{.seed = mix.seed,
                                  .unit = mix.unit,
                                  .units_per_step = mix.units_per_step,
                                  .max_sample_tokens = mix.max_sample_tokens};
  for (std::size_t i = 0; i < mix.sources.size(); ++i) {
    const planning::MixSource& source = mix.sources[i];
    mixture.sources.push_back({.records = takes_part(config.sources[i], config.run) ? records : 0,
                               .weight = source.weight,
                               .exhausted = source.exhausted,
                               .epochs = source.epochs,
                               .order = source.order});
  }
  return mixture;
}

}  // namespace batchloom::control
