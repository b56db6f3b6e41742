// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "batchloom/base/runtime.h"

namespace batchloom::control {

/// How far one source of a run is. Of this run, where nothing else is said.
struct SourceProgress {
  std::uint64_t samples = 0;  ///< Of steps that constructors got.
  std::uint64_t tokens = 0;   ///< Of these samples.
  /// Its share of what is drawn, as its weight has it at the step that constructors got last: of
  /// tokens, or of samples where steps count those. 0 to 1.
  double share = 0;
  std::uint32_t epoch = 0;        ///< The pass, from 0, that is drawn from next.
  std::uint64_t bad_records = 0;  ///< Passed over in the life of the stream.
  std::uint64_t bytes = 0;        ///< Brought by loaders, for steps that were planned anew too.
  Duration busy{};                ///< Of all loaders' threads together, bringing it.
  Duration waited{};              ///< That the run waited for this source.
};

}  // namespace batchloom::control
