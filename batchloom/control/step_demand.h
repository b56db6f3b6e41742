// SPDX-License-Identifier: Apache-2.0
// What steps will ask of sources: known before they are planned, because weights are schedules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/control/partition.h"
#include "batchloom/control/source_profile.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/planning/mixture_state.h"

namespace batchloom::control {

/// The mix with weights of 0 for sources that have no records: they take part in nothing.
planning::MixSpec mix_of_records(const planning::MixSpec& mix, const planning::Metadata& metadata);

struct StepRange {
  model::Step first;
  std::uint64_t count = 1;  ///< At least 1.
};

/// Samples of a step, by SourceId: of each source the most that a step of the range is expected to
/// have. It is looked for in kStepsLookedAt steps of the range, the first and the last among them.
/// `costs` say how many tokens a sample has, where steps count tokens; a source of which they say
/// nothing has samples as long as the others' are. `states`, where they are there, say which
/// sources are gone, and which have another weight than their schedule's.
std::vector<double> samples_expected(const planning::MixSpec& mix,
                                     std::span<const SampleCost> costs,
                                     std::span<const planning::SourceState> states,
                                     const StepRange& range);
inline constexpr std::uint64_t kStepsLookedAt = 9;

/// With what each costs. A source that nobody has measured costs what the dearest of the others
/// does, for as many tokens.
std::vector<SourceDemand> demands_of(std::span<const double> samples,
                                     std::span<const SampleCost> costs);

}  // namespace batchloom::control
