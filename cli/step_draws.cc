// SPDX-License-Identifier: Apache-2.0
#include "cli/step_draws.h"

#include <algorithm>

#include "batchloom/store/batch_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"

namespace batchloom::cli {

void add_draws(const store::BatchIndex& index, std::uint32_t position, StepDraws& draws) {
  for (const model::PlanSample& sample : index.steps[position].plan.samples) {
    const model::Epoch pass = sample.id.epoch;
    const auto [at, is_new] = draws.try_emplace(index.origin.sources[sample.id.source.value].name,
                                                SourceDraws{.first_pass = pass, .last_pass = pass});
    SourceDraws& source = at->second;
    ++source.samples;
    source.tokens += sample.tokens;
    source.first_pass = std::min(source.first_pass, pass);
    source.last_pass = std::max(source.last_pass, pass);
  }
}

Result<StepDraws> draws_of(const store::Stream& stream, const store::Head& head, StepRange steps) {
  StepDraws draws;
  store::SegmentReader segments(stream);
  store::BatchReader reader(stream);
  for (store::Step step = steps.first; step < steps.end;) {
    const CallOptions call = short_call(stream.runtime());
    BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head, step, call));
    BL_ASSIGN_OR_RETURN(const auto index, reader.read_index(entry, call));
    const store::Step end = std::min(entry.end_step(), steps.end);
    for (; step < end; ++step) {
      add_draws(*index, static_cast<std::uint32_t>(step - entry.first_step), draws);
    }
  }
  return draws;
}

}  // namespace batchloom::cli
