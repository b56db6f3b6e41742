// SPDX-License-Identifier: Apache-2.0
// `batchloom store show --step`: a step's entry, its plan, and for each piece of it who trains on
// what, and where that came from.
#include <fmt/format.h>

#include "batchloom/store/batch_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

using model::HdpRank;

std::string ring_text(const model::StepPlan& plan, const model::MicroBatch& micro_batch) {
  std::string ring;
  for (const HdpRank member : plan.members_of(plan.tasks[micro_batch.task.value])) {
    ring += fmt::format("{}{}", ring.empty() ? "" : " ", member.value);
  }
  return ring;
}

/// The step `position` of an object, as its index describes it.
class StepProvenance {
 public:
  StepProvenance(const store::BatchIndex& index, std::uint32_t position)
      : index_(index), step_(index.steps[position]) {}

  /// One row per piece of `rank`, in the order in which it runs them.
  void add_rows(HdpRank rank, std::vector<Fields>& rows) const {
    const model::StepPlan& plan = step_.plan;
    std::uint64_t number = 0;
    for (const model::MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
      const std::string ring = ring_text(plan, micro_batch);
      for (const model::Piece& piece : plan.pieces_of(micro_batch)) {
        Fields& row = rows.emplace_back();
        row.add("rank", std::uint64_t{rank.value}).add("micro_batch", number).add("ring", ring);
        add_piece(piece, row);
      }
      ++number;
    }
  }

 private:
  void add_piece(const model::Piece& piece, Fields& row) const {
    const model::PlanSample& sample = step_.plan.samples[piece.sample.value];
    const auto& origin = step_.origins[piece.sample.value];
    const model::SourcePlace& place = origin.place;
    row.add("sample", model::to_string(sample.id))
        .add("source", source_name(sample.id.source))
        .add("shard", std::uint64_t{place.shard.value})
        .add("offset_bytes", place.offset_bytes)
        .add("size_bytes", place.size_bytes)
        .add("lo", std::uint64_t{piece.lo})
        .add("hi", std::uint64_t{piece.hi})
        .add("sample_tokens", std::uint64_t{sample.tokens})
        .add("sample_valid_labels", std::uint64_t{sample.valid_labels});
    if (origin.image_patches.empty()) return;
    const std::vector<std::uint64_t> patches(origin.image_patches.begin(),
                                             origin.image_patches.end());
    row.add("sample_image_patches", patches);
  }

  std::string source_name(model::SourceId source) const {
    const auto& sources = index_.origin.sources;
    return source.value < sources.size() ? sources[source.value].name : "";
  }

  const store::BatchIndex& index_;
  const store::IndexedStep& step_;
};

void add_plan(const store::BatchIndex& index, const model::StepPlan& plan, Fields& fields) {
  fields.add("planner", index.origin.planner)
      .add("strategy", plan.strategy)
      .add("topology", model::to_string(plan.topology))
      .add("plan_digest", fmt::format("{:016x}", plan.digest))
      .add("samples", std::uint64_t{plan.samples.size()})
      .add("global_valid_labels", plan.global_valid_labels);
}

Status check_rank(HdpRank rank, store::Step step, std::uint32_t ranks) {
  if (rank.value < ranks) return Status::ok();
  return Status::invalid(fmt::format("step {} was laid out for ranks 0 to {}; there is no rank {}",
                                     step.value, ranks - 1, rank.value));
}

}  // namespace

Status show_step(const StoreShow& args, const store::Stream& stream, const store::Head& head,
                 const CallOptions& call) {
  store::SegmentReader segments(stream);
  BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head, *args.step, call));
  if (args.rank) BL_RETURN_IF_ERROR(check_rank(*args.rank, *args.step, entry.ranks));
  store::BatchReader reader(stream);
  BL_ASSIGN_OR_RETURN(const auto index, reader.read_index(entry, call));
  const auto position = static_cast<std::uint32_t>(*args.step - entry.first_step);
  const StepProvenance provenance(*index, position);
  std::vector<Fields> rows;
  for (std::uint32_t rank = 0; rank < entry.ranks; ++rank) {
    if (!args.rank || args.rank->value == rank) provenance.add_rows(HdpRank(rank), rows);
  }
  Fields fields = describe_entry(entry);
  fields.add_hex("run_table", entry.run_table).add("position", std::uint64_t{position});
  add_plan(*index, index->steps[position].plan, fields);
  fields.add("pieces", std::span<const Fields>(rows));
  print_result(fields, args.stream.json);
  return Status::ok();
}

}  // namespace batchloom::cli
