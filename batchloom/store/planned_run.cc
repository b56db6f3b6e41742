// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/planned_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::store {
namespace {

bool same_tensor(const RunPiece::Tensor& has, const PieceTensor& is) {
  return has.token == is.token && has.info == is.info;
}

bool same_piece(const RunPiece& has, const model::StepPlan& plan, const model::Piece& is,
                const IndexedPiece& indexed) {
  const model::PlanSample& sample = plan.samples[is.sample.value];
  return has.sample == sample.id && has.lo == is.lo && has.hi == is.hi &&
         has.sample_tokens == sample.tokens && has.first_position == sample.first_position &&
         has.crc == indexed.crc && has.has_next_token == indexed.has_next_token &&
         has.all_labels == indexed.all_labels &&
         std::ranges::equal(has.tensors, indexed.tensors, same_tensor);
}

std::optional<std::string> difference(const RunMicroBatch& has, const model::StepPlan& plan,
                                      const model::MicroBatch& is,
                                      const std::vector<IndexedPiece>& indexed) {
  const model::Task& task = plan.tasks[is.task.value];
  if (has.task != is.task.value) return "is of another task";
  if (has.offload != task.offload) return "has another offload";
  if (!std::ranges::equal(has.ring, plan.members_of(task))) return "has another ring";
  if (has.pieces.size() != is.pieces.size()) return "has other pieces";
  for (std::uint32_t i = 0; i < is.pieces.size(); ++i) {
    const std::uint32_t at = is.pieces.begin + i;
    if (!same_piece(has.pieces[i], plan, plan.pieces[at], indexed[at])) {
      return fmt::format("has another piece {}", i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<RunEvent>> events_by_rank(const model::StepPlan& plan) {
  std::vector<std::vector<RunEvent>> events(plan.ranks.size());
  for (const auto& [task, phase] : plan.events) {
    for (const model::HdpRank rank : plan.members_of(plan.tasks[task.value])) {
      const auto micro_batches = plan.micro_batches_of(rank);
      const auto own = std::ranges::lower_bound(micro_batches, task, {}, &model::MicroBatch::task);
      events[rank.value].push_back(
          {.micro_batch = static_cast<std::uint32_t>(own - micro_batches.begin()), .phase = phase});
    }
  }
  return events;
}

std::optional<std::string> difference_from_index(const Run& run, const BatchIndex& index,
                                                 std::span<const RunEvent> events) {
  const model::StepPlan& plan = index.steps[run.position].plan;
  if (run.token_width != index.token_width) return "tokens have another width";
  if (run.samples_digest != samples_digest(plan.samples)) return "is of other samples";
  if (run.plan_digest != plan.digest) return "is of another plan";
  if (run.global_valid_labels != plan.global_valid_labels) return "counts other labels";
  const auto planned = plan.micro_batches_of(run.rank);
  if (run.micro_batches.size() != planned.size()) return "has other micro-batches";
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto wrong =
        difference(run.micro_batches[i], plan, planned[i], index.pieces[run.position]);
    if (wrong) return fmt::format("micro-batch {} {}", i, *wrong);
  }
  if (!std::ranges::equal(run.events, events)) return "has another order of events";
  return std::nullopt;
}

std::uint64_t counted_labels(const RunPiece& piece) {
  if (piece.all_labels) return existing_labels(piece.hi - piece.lo, piece.has_next_token);
  std::uint64_t labels = 0;
  for (const auto& [begin, end] : piece.labels) labels += end - begin;
  return labels;
}

}  // namespace batchloom::store
