// SPDX-License-Identifier: Apache-2.0
// All that a mixture must remember to go on exactly: O(sources), and its stored form.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/base/strong_int.h"
#include "batchloom/model/ids.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/schedule.h"

namespace batchloom::planning {

/// How many live updates of weights there have been.
using WeightsVersion = StrongInt<struct WeightsVersionTag, std::uint32_t>;

/// Where a source stands.
struct SourceState {
  model::Epoch epoch;
  std::uint64_t place = 0;  ///< In the order of the pass, of the next record.
  model::PartIndex part;    ///< Of that record, which comes next.
  /// What it is owed (or, negative, has drawn ahead): tokens or samples, times 2^share_bits().
  /// All credits together are 0.
  std::int64_t credit = 0;
  std::optional<Weight> set_weight;  ///< By the last live update in force; the schedule without.
  bool gone = false;                 ///< Dropped for ever.

  friend bool operator==(const SourceState&, const SourceState&) = default;
};

/// A live update that is not yet in force: from `from_step` on, these sources weigh this.
struct WeightsEntry {
  model::Step from_step;
  WeightsVersion version;
  std::vector<SourceWeight> weights;  ///< By ascending source, not empty.

  friend bool operator==(const WeightsEntry&, const WeightsEntry&) = default;
};

/// A value. Updates in force are in the sources' rows; the log holds those to come.
struct MixtureState {
  StepUnit unit = StepUnit::kTokens;
  std::uint32_t max_sample_tokens = 1;
  model::Step step;              ///< The step that the next draw belongs to, if it fits.
  std::uint64_t step_units = 0;  ///< Tokens or samples that it has so far.
  bool ended = false;            ///< A source stopped the stream.
  WeightsVersion version;
  std::vector<WeightsEntry> log;  ///< By ascending (from_step, version).
  std::vector<SourceState> sources;

  friend bool operator==(const MixtureState&, const MixtureState&) = default;
};

/// At most this many live updates wait to come into force, with two weights per source together (or
/// kMaxLogEntries, if that is more): so a state of 1,000 sources stays below 64 KiB.
inline constexpr std::size_t kMaxLogEntries = 64;
inline constexpr std::size_t kMaxLogWeightsPerSource = 2;

/// Fractional bits of shares and credits. With kMaxSources and kMaxSampleTokens, the largest credit
/// that a stored state may have and what mixture.h proves it can grow by are below 2^63 together.
constexpr int share_bits(StepUnit unit) {
  return unit == StepUnit::kTokens ? 35 : 52;
}
/// No credit is larger, either way: 28 of the largest parts; 2 H(kMaxSources) is less than 24.
std::int64_t max_credit(StepUnit unit, std::uint32_t max_sample_tokens);

/// Bytes that are equal for equal states (docs/formats/mixture_state.md): 34 per source, 12 per
/// weight in the log, 64 at most besides and 16 per entry.
Bytes encode_mixture_state(const MixtureState& state);

/// The state in `bytes`, which may be hostile. What is returned can be continued: limits hold,
/// credits add up to 0, the log ascends. `corruption`: damaged, cut short or contradictory;
/// `invalid`: of a later version. The message names the byte and the reason.
Result<MixtureState> decode_mixture_state(ByteSpan bytes);

}  // namespace batchloom::planning
