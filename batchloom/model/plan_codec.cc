// SPDX-License-Identifier: Apache-2.0
// Decoding trusts nothing: 1. the FlatBuffers verifier (offsets and lengths stay inside), 2. the
// version, 3. enums and topology, 4. the structure, 5. the digest. A flipped bit that passes one of
// the first four changes the digest.
#include "batchloom/model/plan_codec.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/plan_generated.h"

namespace batchloom::model {
namespace {

constexpr std::uint16_t kVersion = 1;
/// A plan holds one table for itself and one per level; the verifier's limit follows from the
/// bytes, of which every table needs at least this many.
constexpr std::size_t kLeastTableBytes = 8;
constexpr flatbuffers::uoffset_t kMaxDepth = 4;
/// FlatBuffers reads integers in place, which needs their natural alignment.
constexpr std::size_t kAlignmentBytes = 8;
constexpr std::size_t kMaxSizeBytes = std::size_t{1} << 30;

fb::IndexRange to_fb(IndexRange range) {
  return {range.begin, range.end};
}
IndexRange from_fb(const fb::IndexRange& range) {
  return {range.begin(), range.end()};
}

fb::Sample to_fb(const PlanSample& sample) {
  return {sample.id.index.value, sample.first_position, sample.id.source.value,
          sample.id.epoch.value, sample.id.part.value,  sample.tokens,
          sample.valid_labels};
}

PlanSample from_fb(const fb::Sample& sample) {
  return {.id = {SourceId(sample.source()), Epoch(sample.epoch()), RecordIndex(sample.index()),
                 PartIndex(sample.part())},
          .tokens = sample.tokens(),
          .valid_labels = sample.valid_labels(),
          .first_position = sample.first_position()};
}

fb::Piece to_fb(const Piece& piece) {
  return {piece.sample.value, piece.lo, piece.hi};
}
Piece from_fb(const fb::Piece& piece) {
  return {SampleIndex(piece.sample()), piece.lo(), piece.hi()};
}

fb::MicroBatch to_fb(const MicroBatch& micro_batch) {
  return {micro_batch.task.value, to_fb(micro_batch.pieces)};
}
MicroBatch from_fb(const fb::MicroBatch& micro_batch) {
  return {TaskIndex(micro_batch.task()), from_fb(micro_batch.pieces())};
}

fb::Task to_fb(const Task& task) {
  return {task.cost_ns, to_fb(task.members), task.offload.value};
}
Task from_fb(const fb::Task& task) {
  return {from_fb(task.members()), OffloadRatio(task.offload()), task.cost_ns()};
}

/// An unknown phase is kept; the structure check refuses it.
Event from_fb(const fb::Event& event) {
  return {TaskIndex(event.task()), static_cast<Phase>(event.phase())};
}
fb::Event to_fb(const Event& event) {
  return {event.task.value, static_cast<std::uint8_t>(event.phase)};
}

fb::AxisExtent to_fb(const AxisExtent& axis) {
  return {static_cast<std::uint8_t>(axis.axis), axis.extent};
}

template <class T>
auto store(flatbuffers::FlatBufferBuilder& builder, const std::vector<T>& values) {
  using Stored = decltype(to_fb(values.front()));
  // Not CreateUninitializedVectorOfStructs: FlatBuffers 2.0.8 aligns that one by the struct's size.
  return builder.CreateVectorOfStructs<Stored>(
      values.size(), [&values](std::size_t i, Stored* out) { *out = to_fb(values[i]); });
}

/// The verifier looks at the alignment of a vector's length, not at that of its elements (which
/// nobody aligns when there are none).
template <class Stored>
auto load(const flatbuffers::Vector<const Stored*>& stored)
    -> Result<std::vector<decltype(from_fb(*stored.Get(0)))>> {
  const auto address = reinterpret_cast<std::uintptr_t>(stored.Data());
  if (stored.size() != 0 && address % alignof(Stored) != 0) {
    return Status::invalid(fmt::format("a vector of {} structs is not aligned", stored.size()));
  }
  std::vector<decltype(from_fb(*stored.Get(0)))> values;
  values.reserve(stored.size());
  for (const Stored* value : stored) values.push_back(from_fb(*value));
  return values;
}

Result<Topology> load_topology(const fb::Plan& stored) {
  std::vector<AxisExtent> axes;
  for (const fb::AxisExtent* axis : *stored.axes()) {
    if (axis->axis() >= kAxisCount) {
      return Status::invalid(fmt::format("axis number {} is unknown", axis->axis()));
    }
    axes.push_back({static_cast<Axis>(axis->axis()), axis->extent()});
  }
  // Bounded before anything is copied: levels may share one long name.
  if (stored.levels()->size() > kLevelsMax) {
    return Status::invalid(
        fmt::format("{} levels, at most {} can be", stored.levels()->size(), kLevelsMax));
  }
  std::vector<Level> levels;
  for (const fb::Level* level : *stored.levels()) {
    if (level->name()->size() > kLevelNameMaxBytes) {
      return Status::invalid(fmt::format("the name of a level has {} bytes, at most {} can be",
                                         level->name()->size(), kLevelNameMaxBytes));
    }
    levels.push_back({level->name()->str(), level->ranks_per_group(),
                      level->bandwidth_bytes_per_s(), level->latency_ns()});
  }
  return Topology::create(std::move(axes), std::move(levels));
}

/// A verified buffer's plan, checked for all but version and digest. Errors are `invalid`.
Result<StepPlan> load_plan(const fb::Plan& stored) {
  StepPlan plan;
  BL_ASSIGN_OR_RETURN(plan.topology, load_topology(stored));
  plan.strategy = stored.strategy()->str();
  BL_ASSIGN_OR_RETURN(plan.samples, load(*stored.samples()));
  BL_ASSIGN_OR_RETURN(plan.pieces, load(*stored.pieces()));
  BL_ASSIGN_OR_RETURN(plan.micro_batches, load(*stored.micro_batches()));
  BL_ASSIGN_OR_RETURN(plan.ranks, load(*stored.ranks()));
  BL_ASSIGN_OR_RETURN(plan.tasks, load(*stored.tasks()));
  for (const std::uint32_t rank : *stored.members()) plan.members.emplace_back(rank);
  BL_ASSIGN_OR_RETURN(plan.events, load(*stored.events()));
  plan.global_valid_labels = stored.global_valid_labels();
  plan.lower_bound_ns = stored.lower_bound_ns();
  plan.bound_term = static_cast<BoundTerm>(stored.bound_term());
  plan.makespan_ns = stored.makespan_ns();
  plan.digest = stored.digest();
  BL_RETURN_IF_ERROR(check_plan_structure(plan));
  return plan;
}

}  // namespace

Bytes encode_plan(const StepPlan& plan) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Level>> levels;
  for (const Level& level : plan.topology.levels()) {
    levels.push_back(fb::CreateLevel(builder, builder.CreateString(level.name),
                                     level.ranks_per_group, level.bandwidth_bytes_per_s,
                                     level.latency_ns));
  }
  const auto axes = store(builder, plan.topology.axes());
  const auto stored_levels = builder.CreateVector(levels);
  const auto strategy = builder.CreateString(plan.strategy);
  const auto samples = store(builder, plan.samples);
  const auto pieces = store(builder, plan.pieces);
  const auto micro_batches = store(builder, plan.micro_batches);
  const auto ranks = store(builder, plan.ranks);
  const auto tasks = store(builder, plan.tasks);
  std::uint32_t* member = nullptr;
  const auto members = builder.CreateUninitializedVector(plan.members.size(), &member);
  for (const HdpRank rank : plan.members) *member++ = flatbuffers::EndianScalar(rank.value);
  const auto events = store(builder, plan.events);
  fb::FinishPlanBuffer(
      builder, fb::CreatePlan(
                   builder, kVersion, axes, stored_levels, strategy, samples, pieces, micro_batches,
                   ranks, tasks, members, events, plan.global_valid_labels, plan.lower_bound_ns,
                   static_cast<std::uint8_t>(plan.bound_term), plan.makespan_ns, plan.digest));
  BL_CHECK(builder.GetSize() < kMaxSizeBytes, "a plan of 1 GiB or more");
  const ByteSpan encoded = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {encoded.begin(), encoded.end()};
}

Result<StepPlan> decode_plan(ByteSpan bytes) {
  if (bytes.size() >= kMaxSizeBytes) {
    return Status::corruption(fmt::format("plan: {} bytes are more than any plan", bytes.size()));
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignmentBytes != 0) {
    return decode_plan(Bytes(bytes.begin(), bytes.end()));
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / kLeastTableBytes);
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, max_tables);
  if (!fb::VerifyPlanBuffer(verifier)) {
    return Status::corruption(
        fmt::format("plan: {} bytes are not a whole FlatBuffer of a plan", bytes.size()));
  }
  if (const std::uint16_t version = fb::GetPlan(data)->version(); version != kVersion) {
    return Status::invalid(
        fmt::format("plan: format version {} is unknown; this build reads "
                    "version {}: upgrade batchloom",
                    version, kVersion));
  }
  Result<StepPlan> plan = load_plan(*fb::GetPlan(data));
  if (!plan.is_ok()) {
    return Status::corruption("plan: " + std::string(plan.status().message()));
  }
  if (const std::uint64_t digest = plan_digest(*plan); digest != plan->digest) {
    return Status::corruption(fmt::format("plan: the fields' digest is {:016x}, stored is {:016x}",
                                          digest, plan->digest));
  }
  return plan;
}

}  // namespace batchloom::model
