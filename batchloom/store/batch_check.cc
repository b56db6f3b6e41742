// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/keys.h"

namespace batchloom::store {
namespace {

bool same_pieces(const RunMicroBatch& run, std::span<const model::Piece> pieces,
                 const model::StepPlan& plan) {
  return std::ranges::equal(run.pieces, pieces, [&](const RunPiece& has, const model::Piece& is) {
    const model::PlanSample& sample = plan.samples[is.sample.value];
    return has.sample == sample.id && has.lo == is.lo && has.hi == is.hi &&
           has.sample_tokens == sample.tokens && has.first_position == sample.first_position;
  });
}

/// Whether the rank was given what the plan in the index says.
bool is_as_planned(const Run& run, const model::StepPlan& plan) {
  if (run.plan_digest != plan.digest || run.samples_digest != samples_digest(plan.samples) ||
      run.global_valid_labels != plan.global_valid_labels) {
    return false;
  }
  return std::ranges::equal(run.micro_batches, plan.micro_batches_of(run.rank),
                            [&](const RunMicroBatch& has, const model::MicroBatch& is) {
                              return same_pieces(has, plan.pieces_of(is), plan);
                            });
}

}  // namespace

Result<std::vector<std::string>> BatchCheck::check(const Entry& entry, const CallOptions& call) {
  if (depth_ == VerifyDepth::kManifest) return std::vector<std::string>();
  const auto index = reader_.read_index(entry, call);
  if (!index.is_ok()) {
    skip();
    BL_ASSIGN_OR_RETURN(auto damage, damage_of(entry, index.status(), call));
    return std::vector{std::move(damage)};
  }
  std::vector<std::string> problems;
  if (depth_ == VerifyDepth::kPayload) {
    BL_ASSIGN_OR_RETURN(problems, check_runs(entry, **index, call));
  }
  if (const auto wrong = records_.add(entry, **index)) {
    problems.push_back(fmt::format("{}: {}", data_key(entry.object()), *wrong));
  }
  return problems;
}

/// What the reader found wrong with the object's bytes; the error, where that is the store's.
Result<std::string> BatchCheck::damage_of(const Entry& entry, const Status& error,
                                          const CallOptions& call) const {
  if (error.is(ErrorKind::kInvalid)) {  // A version from the future, or no permission.
    const auto readable =
        stream_.objects().get(data_key(entry.object()), {.offset = 0, .length = 1}, call);
    BL_RETURN_IF_ERROR(readable.status());
  } else if (!error.is(ErrorKind::kCorruption)) {
    return error;
  }
  return std::string(error.message());
}

Result<std::vector<std::string>> BatchCheck::check_runs(const Entry& entry, const BatchIndex& index,
                                                        const CallOptions& call) {
  std::vector<std::string> problems;
  for (std::uint32_t rank = 0; rank < entry.ranks; ++rank) {
    const auto runs = reader_.read_runs(entry, model::HdpRank(rank), call);
    if (!runs.is_ok()) {
      BL_ASSIGN_OR_RETURN(problems.emplace_back(), damage_of(entry, runs.status(), call));
      continue;
    }
    for (const Run& run : *runs) {
      if (is_as_planned(run, index.steps[run.position].plan)) continue;
      problems.push_back(fmt::format("{}: the run of rank {} in step {} is not what the index says",
                                     data_key(entry.object()), rank,
                                     (entry.first_step + run.position).value));
    }
  }
  return problems;
}

}  // namespace batchloom::store
