// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "batchloom/base/bytes.h"
#include "batchloom/store/head.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// What a producer has committed with its last batch, as `row` of a head says, without fencing
/// anybody. nullopt where it is stored beside and was reclaimed meanwhile: the producer has gone
/// on. `corruption` where it is damaged; else errors of the store.
Result<std::optional<Bytes>> committed_state(const Stream& stream, const ProducerRow& row,
                                             const CallOptions& call);

}  // namespace batchloom::store
