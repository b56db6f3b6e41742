// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/batch_sample_testing.h"

#include <gtest/gtest.h>

#include "batchloom/objstore/memory_store.h"

namespace batchloom::simulator {

BatchSources sample_sources() {
  const SourceShape shapes[] = {{.producer = "p0", .steps_per_object = 2, .ring = false},
                                {.producer = "p1", .steps_per_object = 3, .ring = true}};
  return BatchSources(shapes);
}

SampleObject make_sample(const BatchSources& sources, const SampleName& name,
                         const std::function<void(SyntheticBatches::Object&)>& spoil) {
  const SyntheticBatches& batches = sources.of(name.producer, name.ranks);
  const store::Seq seq(name.seq);
  SyntheticBatches::Object object = batches.object(seq);
  if (spoil) spoil(object);
  store::BatchOptions options;
  options.identity = {
      .stream = kSampleStream, .producer = name.producer, .term = kSampleTerm, .seq = seq};
  options.token_width = batches.config().token_width;
  options.origin = batches.origin();
  const auto built = store::build_batch(options, object.steps());
  EXPECT_TRUE(built.is_ok()) << built.status().to_string();
  SampleObject sample;
  sample.bytes = objstore::concatenate(built->parts);
  sample.entry.producer = name.producer;
  sample.entry.term = kSampleTerm;
  sample.entry.seq = seq;
  sample.entry.steps = built->steps;
  sample.entry.ranks = built->ranks;
  sample.entry.size_bytes = built->size_bytes;
  sample.entry.run_table = built->run_table;
  return sample;
}

store::Run read_sample(const SampleObject& sample, std::uint32_t position, model::HdpRank rank) {
  const store::BatchIdentity identity{.stream = kSampleStream,
                                      .producer = sample.entry.producer,
                                      .term = kSampleTerm,
                                      .seq = sample.entry.seq};
  const store::BatchContext context{.key = "sample",
                                    .identity = identity,
                                    .steps = sample.entry.steps,
                                    .ranks = sample.entry.ranks,
                                    .size_bytes = sample.bytes.size()};
  const std::size_t size = store::rank_rows_bytes(sample.entry.steps);
  const auto rows = store::decode_rank_rows(
      context, rank, ByteSpan(sample.entry.run_table).subspan(size * rank.value, size));
  const store::RunRow row = rows.value().at(position);
  return store::decode_run({.key = "sample",
                            .identity = identity,
                            .position = position,
                            .rank = rank,
                            .row = row},
                           std::make_shared<const Bytes>(sample.bytes), row.offset_bytes)
      .value();
}

}  // namespace batchloom::simulator
