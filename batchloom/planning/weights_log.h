// SPDX-License-Identifier: Apache-2.0
// Which weight holds: a source's schedule, until a live update names the source. An update holds
// from its step on. Of several, the one with the later (from_step, version) does.
#pragma once

#include <span>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/mixture_state.h"

namespace batchloom::planning {

/// The weights in force, also in steps to come as long as there is no update; of updates that are
/// in the log already it knows nothing. Borrows both, by SourceId.
class WeightsInForce {
 public:
  WeightsInForce(std::span<const MixtureSource> sources, std::span<const SourceState> rows)
      : sources_(sources), rows_(rows) {}

  /// 0 for a source that is gone or has no records. Precondition: the source exists.
  Weight at(std::size_t source, model::Step step) const;
  /// As Schedule::constant_until().
  model::Step constant_until(std::size_t source, model::Step step) const;
  std::size_t size() const { return rows_.size(); }

 private:
  bool takes_part(std::size_t source) const {
    return !rows_[source].gone && sources_[source].records != 0;
  }

  std::span<const MixtureSource> sources_;
  std::span<const SourceState> rows_;
};

/// Adds an update to the log. `invalid`: a source that does not exist, one that is named twice, a
/// weight above kMaxWeight, no weight at all. `exhausted`: too many wait (kMaxLogEntries).
Status add_to_log(MixtureState& state, model::Step from_step,
                  std::span<const SourceWeight> weights);

/// Moves the updates whose step has come into the rows; whether there were any.
bool apply_due_updates(MixtureState& state);

/// `invalid`: a step from the state's on in which every source weighs 0, by schedules, rows and the
/// log. The message names the first.
Status check_some_weight(const MixtureConfig& config, const MixtureState& state);

}  // namespace batchloom::planning
