// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/store/run.h"

namespace batchloom::cli {

/// What a rank trains on, told without layout: added up modulo 2^64 over the ranks of a step it is
/// the same for every topology. The sum over all tokens of a hash of (sample, place in the sample,
/// id, label), where the label is the next id, or none where it does not count. Linear in tokens.
std::uint64_t content_sum(const std::vector<store::RunMicroBatch>& micro_batches,
                          store::TokenWidth width);

}  // namespace batchloom::cli
