// SPDX-License-Identifier: Apache-2.0
// A vision-language step: pictures onto all ranks by the encoder's time, tokens onto groups along
// dp by the backbone's, where one rank of each tensor-parallel group reads for the others.
#include <fmt/format.h>

#include "batchloom/planning/record_table.h"
#include "batchloom/planning/sample_graph.h"

namespace bp = batchloom::planning;

/// A table of pages that begin with a picture, and of plain text.
bp::RecordTable records() {
  bp::TableSource pages{.name = "pages", .records = {}};
  for (std::uint32_t i = 0; i < 500; ++i) {
    pages.records.push_back({.tokens = 900 + i % 100, .pictures = {{0, 200 + 37 * i % 3'000}}});
  }
  const bp::TableSource text{.name = "text",
                             .records = std::vector(2'000, bp::TableRecord{.tokens = 700})};
  return bp::RecordTable::create({pages, text}).value();
}

/// An encoder of which two timings are known; between them, and above, it follows its work.
bp::CostModel encoder() {
  bp::CostModel model;
  model.name = "vit";
  model.layers = 24;
  model.encoder = bp::CostCurve::create({{256, 90'000'000}, {4'096, 2'900'000'000}},
                                        bp::CostCurve::Growth::kQuadratic)
                      .value();
  return model;
}

int main() {
  bp::RecordTable metadata = records();
  auto graph = bp::SampleGraph(metadata).mix(
      {.seed = 17,
       .unit = bp::StepUnit::kTokens,
       .units_per_step = 200'000,
       .max_sample_tokens = 4'096,
       .sources = {{.name = "pages", .weight = bp::Schedule(bp::Weight(3))},
                   {.name = "text", .weight = bp::Schedule(bp::Weight(1))}}});
  graph.select(bp::Modality::kImage)
      .distribute(bp::Spread::kWorld)
      .cost(encoder())
      .balance(bp::Balance::kLpt);
  graph.select(bp::Modality::kText)
      .distribute(bp::Spread::kDp)
      .cost("h200-llama7b")
      .balance(bp::Balance::kTwoLevel, {.capacity_tokens = 8'192})
      .broadcast_at(batchloom::model::Axis::kTp);

  const auto topology = batchloom::model::Topology::parse("dp=4 tp=4").value();
  const bp::GraphPlan step = graph.plan(topology).value();
  fmt::print("{} samples in {} micro-batches per group\n", step.plan.samples.size(),
             step.plan.ranks[0].size());
  fmt::print("{} pictures on {} ranks: imbalance {:.3f}, {:.3f} if dealt out\n",
             step.pictures->pictures.size(), step.pictures->buckets, step.pictures->imbalance(),
             step.pictures->imbalance_before());
}
