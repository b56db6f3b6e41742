// SPDX-License-Identifier: Apache-2.0
// A layout for any number of ranks, until there is a planner: samples are dealt to them like cards.
#pragma once

#include "batchloom/store/batch_index.h"

namespace batchloom::cli {

/// A plan of the same samples, each whole on one of `ranks` HDP ranks: sample i on rank i modulo
/// `ranks`. Every rank has one micro-batch; one that gets no sample has a filler. The same for
/// every caller. Precondition: ranks is at least 1.
Result<model::StepPlan> deal_samples(const store::IndexedStep& step, std::uint32_t ranks);

}  // namespace batchloom::cli
