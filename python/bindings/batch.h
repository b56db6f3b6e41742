// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/client/rank_reader.h"
#include "python/bindings/arrays.h"

namespace batchloom::python {

/// A step, and what its arrays are made for. Whoever holds it, or an array of it, holds the buffer.
struct Batch {
  std::shared_ptr<const client::RankBatch> data;
  Framework framework = Framework::kNumpy;
};

}  // namespace batchloom::python
