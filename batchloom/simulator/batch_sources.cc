// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/batch_sources.h"

#include <fmt/format.h>

#include "batchloom/base/check.h"

namespace batchloom::simulator {
namespace {

// Every number of ranks divides both.
constexpr std::uint32_t kShortSamples = 6;
constexpr std::uint32_t kLongTokens = 12;
constexpr std::uint32_t kShortTokens = 3;

SyntheticConfig config_of(const SourceShape& shape, std::uint32_t source, std::uint32_t ranks) {
  SyntheticConfig config;
  config.ranks = ranks;
  config.steps_per_object = shape.steps_per_object;
  config.records_per_run = kShortSamples / ranks;
  config.record_tokens = kShortTokens;
  config.ring = shape.ring;
  config.long_tokens = kLongTokens;
  config.source = model::SourceId(source);
  config.pool_places = 512;
  return config;
}

}  // namespace

BatchSources::BatchSources(std::span<const SourceShape> shapes) {
  for (const SourceShape& shape : shapes) {
    const auto source = static_cast<std::uint32_t>(by_source_.size());
    Layouts& layouts = sources_[shape.producer];
    for (std::uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
      auto batches = SyntheticBatches::create(config_of(shape, source, ranks));
      BL_CHECK(batches.is_ok(), batches.status().to_string());
      layouts[ranks - 1] = *std::move(batches);
    }
    by_source_.push_back(shape.producer);
  }
}

const SyntheticBatches& BatchSources::of(std::string_view producer, std::uint32_t ranks) const {
  const auto found = sources_.find(producer);
  BL_CHECK(found != sources_.end() && ranks >= 1 && ranks <= kMostRanks,
           "there is no such source, or no such layout");
  return *found->second[ranks - 1];
}

std::uint64_t BatchSources::records_per_object(std::string_view producer) const {
  const SyntheticBatches& batches = of(producer, 1);
  return std::uint64_t{batches.samples_per_step()} * batches.config().steps_per_object;
}

ExpectedStep BatchSources::expected(const store::Entry& entry, std::uint32_t position,
                                    const RankOf& part) const {
  const SyntheticBatches& batches = of(entry.producer, part.ranks);
  const model::StepPlan plan = batches.plan(entry.seq, position);
  return {.content_hash = batches.expected_hash(entry.seq, position, part.rank),
          .samples_digest = store::samples_digest(plan.samples),
          .plan_digest = plan.digest,
          .global_valid_labels = plan.global_valid_labels};
}

std::uint64_t BatchSources::tokens(const store::Entry& entry, std::uint32_t position,
                                   const RankOf& part) const {
  const model::StepPlan plan = of(entry.producer, part.ranks).plan(entry.seq, position);
  std::uint64_t tokens = 0;
  for (const model::MicroBatch& micro_batch : plan.micro_batches_of(part.rank)) {
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
  }
  return tokens;
}

Result<model::StepPlan> BatchSources::plan_anew(const store::IndexedStep& step,
                                                std::uint32_t ranks) const {
  const auto& samples = step.plan.samples;
  if (samples.empty() || samples.front().id.source.value >= by_source_.size()) {
    return Status::invalid("a step without samples, or with those of an unknown source");
  }
  const model::SampleId& first = samples.front().id;
  const SyntheticBatches& batches = of(by_source_[first.source.value], ranks);
  const std::uint64_t number = first.index.value / batches.samples_per_step();
  const std::uint32_t steps = batches.config().steps_per_object;
  return batches.plan(store::Seq(number / steps), static_cast<std::uint32_t>(number % steps));
}

}  // namespace batchloom::simulator
