// SPDX-License-Identifier: Apache-2.0
// For `batchloom state`: what steps have drawn from each source, by their batches' indexes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "batchloom/store/batch_index.h"
#include "batchloom/store/head.h"
#include "batchloom/store/stream.h"

namespace batchloom::cli {

struct SourceDraws {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  model::Epoch first_pass = {};  ///< The lowest of any sample, from 0.
  model::Epoch last_pass = {};   ///< The highest.

  friend bool operator==(const SourceDraws&, const SourceDraws&) = default;
};

/// By the sources' names: what a number means may change on the way.
using StepDraws = std::map<std::string, SourceDraws>;

/// Adds the step at `position` of an object.
void add_draws(const store::BatchIndex& index, std::uint32_t position, StepDraws& draws);

/// Steps from `first` to before `end`.
struct StepRange {
  store::Step first;
  store::Step end;
};

/// Of all steps of the range, whose indexes it reads one after the other, each within a minute.
/// Errors: of the store; `not_found` for a step that the head does not hold.
Result<StepDraws> draws_of(const store::Stream& stream, const store::Head& head, StepRange steps);

}  // namespace batchloom::cli
