// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batchloom/client/step_batch.h"

namespace batchloom::python {

/// A micro-batch as it was read and verified; what it gives are views.
struct StoredMicroBatch {
  client::StepPtr step;
  std::size_t place = 0;

  const store::RunMicroBatch& get() const { return step->micro_batches[place]; }
};

}  // namespace batchloom::python
