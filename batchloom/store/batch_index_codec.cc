// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_index_codec.h"

#include <fmt/format.h>

#include <string_view>

#include "batchloom/model/plan_codec.h"
#include "batchloom/store/batch_object_generated.h"

namespace batchloom::store {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fb::IndexStep> encode_step(FlatBufferBuilder& builder, const IndexStepRows& step) {
  const Bytes encoded_plan = model::encode_plan(*step.plan);
  std::vector<fb::IndexOrigin> origins;
  origins.reserve(step.origins.size());
  std::vector<std::uint32_t> patches;
  for (const model::SampleMeta& origin : step.origins) {
    origins.emplace_back(origin.place.offset_bytes, origin.place.size_bytes,
                         origin.place.shard.value,
                         static_cast<std::uint32_t>(origin.image_patches.size()));
    patches.insert(patches.end(), origin.image_patches.begin(), origin.image_patches.end());
  }
  std::vector<fb::IndexPiece> pieces;
  pieces.reserve(step.pieces.size());
  for (const PieceFacts& facts : step.pieces) {
    pieces.emplace_back(facts.label_intervals, facts.tensors, encode_flags(facts), facts.crc);
  }
  // Read in place by the plan's decoder, which would have to copy it otherwise.
  builder.ForceVectorAlignment(encoded_plan.size(), sizeof(std::uint8_t), sizeof(std::uint64_t));
  const auto plan = encode_bytes(builder, encoded_plan);
  const auto stored_origins = builder.CreateVectorOfStructs(origins);
  const auto stored_patches = builder.CreateVector(patches);
  const auto micro_batches = builder.CreateVector(step.micro_batches);
  const auto stored_pieces = builder.CreateVectorOfStructs(pieces);
  const auto tensors = encode_tensors(builder, step.tensors);
  return fb::CreateIndexStep(builder, plan, stored_origins, stored_patches, micro_batches,
                             stored_pieces, tensors);
}

/// Of a plan's stored form: plan.md says what its rows take.
std::uint64_t plan_bound(const model::StepPlan& plan) {
  constexpr std::uint64_t kFixedBytes = 1024;  // Tables, axes, lengths and padding.
  std::uint64_t bound = kFixedBytes + plan.strategy.size();
  for (const model::Level& level : plan.topology.levels()) bound += 64 + level.name.size();
  return bound + 40 * plan.samples.size() + 12 * plan.pieces.size() +
         12 * plan.micro_batches.size() + 8 * plan.ranks.size() + 24 * plan.tasks.size() +
         4 * plan.members.size() + 8 * plan.events.size();
}

}  // namespace

std::uint64_t encoded_bound(const BatchIndexRows& rows) {
  constexpr std::uint64_t kFixedBytes = 1024;  // Frame, table, names, lengths and padding.
  constexpr std::uint64_t kStepBytes = 128;
  constexpr std::uint64_t kSourceBytes = 48;
  const BatchOrigin& origin = *rows.origin;
  std::uint64_t bound =
      kFixedBytes + origin.planner.size() + origin.cost_model.size() + origin.cost_table.size();
  for (const BatchOrigin::Source& source : origin.sources) {
    bound += kSourceBytes + source.name.size();
  }
  for (const IndexStepRows& step : rows.steps) {
    bound += kStepBytes + plan_bound(*step.plan) + encoded_bound(step.tensors) +
             sizeof(fb::IndexOrigin) * step.origins.size() +
             sizeof(std::uint64_t) * step.micro_batches.size() +
             sizeof(fb::IndexPiece) * step.pieces.size();
    for (const model::SampleMeta& sample : step.origins) bound += 4 * sample.image_patches.size();
  }
  return bound;
}

Bytes encode_batch_index(const BatchIndexRows& rows) {
  FlatBufferBuilder builder(encoded_bound(rows));
  std::vector<Offset<fb::IndexStep>> steps;
  steps.reserve(rows.steps.size());
  for (const IndexStepRows& step : rows.steps) steps.push_back(encode_step(builder, step));
  std::vector<Offset<fb::IndexSource>> sources;
  sources.reserve(rows.origin->sources.size());
  for (const BatchOrigin::Source& source : rows.origin->sources) {
    sources.push_back(
        fb::CreateIndexSource(builder, builder.CreateString(source.name), source.digest));
  }
  const auto producer = builder.CreateString(rows.identity.producer);
  const auto stored_sources = builder.CreateVector(sources);
  const auto planner = builder.CreateString(rows.origin->planner);
  const auto cost_model = builder.CreateString(rows.origin->cost_model);
  const auto cost_table = encode_bytes(builder, rows.origin->cost_table);
  const auto stored_steps = builder.CreateVector(steps);
  return finish_frame(
             ObjectKind::kBatchIndex, rows.identity.stream, builder,
             fb::CreateIndex(builder, producer, rows.identity.term.value, rows.identity.seq.value,
                             static_cast<std::uint8_t>(rows.token_width),
                             static_cast<std::uint8_t>(Codec::kRaw), stored_sources, planner,
                             rows.origin->planner_digest, rows.origin->capacity_tokens, cost_model,
                             cost_table, stored_steps, rows.origin->max_sample_tokens,
                             rows.origin->min_share_tokens, rows.origin->offload))
      .bytes;
}

Status check_origin(const BatchOrigin& origin) {
  const auto check = [](std::string_view what, std::string_view name) {
    if (name.size() <= kOriginNameMaxBytes) return Status::ok();
    return Status::invalid(fmt::format("the name of {} has {} bytes, at most {} are allowed", what,
                                       name.size(), kOriginNameMaxBytes));
  };
  for (const BatchOrigin::Source& source : origin.sources) {
    BL_RETURN_IF_ERROR(check("a source", source.name));
  }
  BL_RETURN_IF_ERROR(check("the planner", origin.planner));
  return check("the cost model", origin.cost_model);
}

}  // namespace batchloom::store
