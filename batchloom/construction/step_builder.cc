// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/step_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "batchloom/planning/strategies.h"

namespace batchloom::construction {
namespace {

using model::SampleId;
using model::SampleMeta;

std::string name_of(model::Step step) {
  return fmt::format("step {}", step.value);
}

Status sample_error(model::Step step, const SampleId& id, std::string_view what) {
  return Status::invalid(fmt::format("step {}, sample {}: {}", step.value, to_string(id), what));
}

Status check_blocks(const StepInput& step, store::TokenWidth width) {
  for (const BlockPtr& block : step.blocks) {
    const std::uint32_t source = block->source().value;
    if (block->step() != step.planned.step) {
      return Status::invalid(fmt::format("step {}: a block of source {} is of step {}",
                                         step.planned.step.value, source, block->step().value));
    }
    if (block->token_width() != width) {
      return Status::invalid(fmt::format(
          "step {}: a block of source {} has token ids of {} bytes, the stream's have {}: all "
          "loaders need the same `vocab`",
          step.planned.step.value, source, store::token_bytes(block->token_width()),
          store::token_bytes(width)));
    }
  }
  return Status::ok();
}

/// Loaders bring samples by id, as they are planned, but for blocks of several passes or of long
/// records: mostly the blocks alone are to be sorted.
std::vector<const BlockSample*> samples_by_id(std::span<const BlockPtr> blocks) {
  std::vector<const SampleBlock*> sorted;
  std::size_t count = 0;
  for (const BlockPtr& block : blocks) {
    if (block->samples().empty()) continue;
    sorted.push_back(block.get());
    count += block->samples().size();
  }
  const auto first_id = [](const SampleBlock* block) { return block->samples().front().meta.id; };
  std::ranges::sort(sorted, {}, first_id);
  std::vector<const BlockSample*> samples;
  samples.reserve(count);
  for (const SampleBlock* block : sorted) {
    for (const BlockSample& sample : block->samples()) samples.push_back(&sample);
  }
  const auto id = [](const BlockSample* sample) { return sample->meta.id; };
  if (!std::ranges::is_sorted(samples, {}, id)) std::ranges::sort(samples, {}, id);
  return samples;
}

std::vector<const SampleMeta*> members_by_id(std::span<const SampleMeta> members) {
  std::vector<const SampleMeta*> result;
  result.reserve(members.size());
  for (const SampleMeta& member : members) result.push_back(&member);
  const auto id = [](const SampleMeta* member) { return member->id; };
  if (!std::ranges::is_sorted(result, {}, id)) std::ranges::sort(result, {}, id);
  return result;
}

/// Both by id.
Status compare(model::Step step, std::span<const SampleMeta* const> members,
               std::span<const BlockSample* const> samples) {
  std::size_t at = 0;
  for (const SampleMeta* member : members) {
    if (at == samples.size() || samples[at]->meta.id > member->id) {
      return sample_error(step, member->id,
                          fmt::format("is planned, and no block has it; {} samples of {} came",
                                      samples.size(), members.size()));
    }
    const SampleMeta& meta = samples[at]->meta;
    if (meta.id < member->id) return sample_error(step, meta.id, "is in a block, and not planned");
    if (meta != *member) {
      return sample_error(
          step, meta.id,
          fmt::format("was loaded with {} tokens, {} valid labels, position {} and {} pictures, "
                      "and planned with {}, {}, {} and {}, or from another place of its source",
                      meta.tokens, meta.valid_labels, meta.first_position,
                      meta.image_patches.size(), member->tokens, member->valid_labels,
                      member->first_position, member->image_patches.size()));
    }
    ++at;
    if (at < samples.size() && samples[at]->meta.id == member->id) {
      return sample_error(step, member->id, "is in the blocks twice");
    }
  }
  if (at == samples.size()) return Status::ok();
  return sample_error(step, samples[at]->meta.id, "is in a block, and not planned");
}

/// Collectives of fixed groups take place once per micro-batch.
Status check_counts(const model::StepPlan& plan) {
  const auto strategy = planning::find_strategy(plan.strategy);
  if (strategy.is_ok() && (*strategy)->spread == planning::Spread::kHdp) return Status::ok();
  for (std::size_t rank = 1; rank < plan.ranks.size(); ++rank) {
    if (plan.ranks[rank].size() == plan.ranks[0].size()) continue;
    return Status::invalid(fmt::format(
        "rank {} has {} micro-batches and rank 0 has {}, fillers included; by \"{}\" all have the "
        "same number",
        rank, plan.ranks[rank].size(), plan.ranks[0].size(), plan.strategy));
  }
  return Status::ok();
}

Status check_order(std::span<const StepInput> steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].planned.step == steps[i - 1].planned.step + 1) continue;
    return Status::invalid(
        fmt::format("a pack with step {} after step {}; its steps follow each "
                    "other",
                    steps[i].planned.step.value, steps[i - 1].planned.step.value));
  }
  return Status::ok();
}

std::uint64_t plan_bytes(const model::StepPlan& plan) {
  return plan.samples.size() * sizeof(model::PlanSample) +
         plan.pieces.size() * sizeof(model::Piece) +
         plan.micro_batches.size() * sizeof(model::MicroBatch) +
         plan.ranks.size() * sizeof(model::IndexRange) + plan.tasks.size() * sizeof(model::Task) +
         plan.members.size() * sizeof(model::HdpRank) + plan.events.size() * sizeof(model::Event);
}

}  // namespace

std::uint64_t StepInput::size_bytes() const {
  std::uint64_t bytes = sizeof(StepInput) + plan_bytes(planned.layout.plan);
  bytes += planned.members.size() * sizeof(SampleMeta);
  for (const BlockPtr& block : blocks) bytes += block->size_bytes();
  return bytes;
}

Result<StepSamples> match_samples(const StepInput& step, store::TokenWidth width) {
  BL_RETURN_IF_ERROR(check_blocks(step, width));
  const std::vector<const BlockSample*> found = samples_by_id(step.blocks);
  BL_RETURN_IF_ERROR(compare(step.planned.step, members_by_id(step.planned.members), found));
  StepSamples samples;
  samples.contents.reserve(found.size());
  samples.origins.reserve(found.size());
  auto at = found.begin();  // Of the next sample, where the plan has them by id.
  for (const model::PlanSample& planned : step.planned.layout.plan.samples) {
    if (at == found.end() || (*at)->meta.id != planned.id) {
      at = std::ranges::lower_bound(found, planned.id, {},
                                    [](const BlockSample* sample) { return sample->meta.id; });
    }
    if (at == found.end() || (*at)->meta.id != planned.id) {
      return sample_error(step.planned.step, planned.id, "is in the plan, and no member");
    }
    samples.contents.push_back((*at)->content);
    samples.origins.push_back((*at)->meta);
    ++at;
  }
  return samples;
}

Result<store::BuiltBatch> build_steps(const store::BatchOptions& options,
                                      std::span<const StepInput> steps) {
  BL_RETURN_IF_ERROR(check_order(steps));
  std::vector<StepSamples> samples;
  std::vector<store::StepContent> contents;
  samples.reserve(steps.size());
  for (const StepInput& step : steps) {
    const model::StepPlan& plan = step.planned.layout.plan;
    if (const Status counts = check_counts(plan); !counts.is_ok()) {
      return counts.with_context(name_of(step.planned.step));
    }
    BL_ASSIGN_OR_RETURN(StepSamples matched, match_samples(step, options.token_width));
    samples.push_back(std::move(matched));
    contents.push_back(samples.back().content(plan));
  }
  auto built = build_batch(options, contents);
  if (built.is_ok() || steps.empty()) return built;
  return built.status().with_context(
      fmt::format("the object that begins with step {}", steps.front().planned.step.value));
}

}  // namespace batchloom::construction
