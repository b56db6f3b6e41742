// SPDX-License-Identifier: Apache-2.0
// What a mixture is made from: its sources, and what fills a step.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/planning/schedule.h"

namespace batchloom::planning {

/// What happens when it is a source's turn and it has no more records. A source without any
/// records takes part in nothing, whatever this says. Values are part of no format.
enum class Exhausted : std::uint8_t {
  kRepeat,  ///< The next pass begins, in an order of its own; after the last pass as kStop.
  kStop,    ///< The stream ends with the step that is being filled.
  kDrop,    ///< The others share its part, from its last record on.
  kError,   ///< Drawing fails with `exhausted`.
};

/// In which order a pass goes over a source's records.
enum class Order : std::uint8_t {
  kRandom,  ///< Permutation, keyed by (seed, source, epoch).
  kFile,    ///< As the index has them.
};

struct MixtureSource {
  std::uint64_t records = 0;
  Schedule weight;  ///< Of tokens or of samples, as StepUnit says.
  Exhausted exhausted = Exhausted::kStop;
  std::uint32_t epochs = 0;  ///< Passes with kRepeat; 0 for no end. Others make one.
  Order order = Order::kRandom;

  friend bool operator==(const MixtureSource&, const MixtureSource&) = default;
};

/// What a step counts. Values are part of the state's format.
enum class StepUnit : std::uint8_t { kTokens = 0, kSamples = 1 };

inline constexpr std::size_t kMaxSources = 65'536;
/// With kShareBits this leaves room for the credits of kMaxSources sources in 64 bits.
inline constexpr std::uint32_t kMaxSampleTokens = 1U << 22;
inline constexpr std::uint64_t kMaxStepUnits = std::uint64_t{1} << 32;

struct MixtureConfig {
  std::uint64_t seed = 0;
  StepUnit unit = StepUnit::kTokens;
  std::uint64_t units_per_step = 1;         ///< Tokens at most, or samples exactly.
  std::uint32_t max_sample_tokens = 1;      ///< Where records are cut into parts, and nowhere else.
  std::vector<MixtureSource> sources = {};  ///< By SourceId.

  friend bool operator==(const MixtureConfig&, const MixtureConfig&) = default;
};

/// `invalid`, with what is wrong and of which source: limits above exceeded, a step without units
/// or smaller than a part, a source that may not run out and has nothing, passes without kRepeat.
/// Whether anything weighs at all is WeightLog's to say.
Status check_config(const MixtureConfig& config);

/// A source's new weight.
struct SourceWeight {
  model::SourceId source;
  Weight weight;

  friend bool operator==(const SourceWeight&, const SourceWeight&) = default;
};

}  // namespace batchloom::planning
