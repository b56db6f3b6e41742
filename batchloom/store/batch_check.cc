// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_check.h"

#include <fmt/format.h>

#include "batchloom/store/damage.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/runs_check.h"

namespace batchloom::store {

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
    problems.push_back(damage_text(data_key(entry.object()), 0, *wrong));
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
  const std::string key = data_key(entry.object());
  RunsCheck check(index);
  std::vector<std::string> problems;
  for (std::uint32_t rank = 0; rank < entry.ranks; ++rank) {
    const auto runs = reader_.read_runs(entry, model::HdpRank(rank), call);
    if (!runs.is_ok()) {
      BL_ASSIGN_OR_RETURN(problems.emplace_back(), damage_of(entry, runs.status(), call));
      continue;
    }
    for (const Run& run : *runs) {
      const auto wrong = check.add(run);
      if (!wrong) continue;
      problems.push_back(
          damage_text(key, 0,
                      fmt::format("in step {} the run of rank {} is not what the index says: {}",
                                  (entry.first_step + run.position).value, rank, *wrong)));
    }
  }
  for (std::uint32_t i = 0; problems.empty() && i < entry.steps; ++i) {
    if (const auto wrong = check.check_labels(i)) {
      problems.push_back(
          damage_text(key, 0, fmt::format("in step {} {}", (entry.first_step + i).value, *wrong)));
    }
  }
  return problems;
}

}  // namespace batchloom::store
