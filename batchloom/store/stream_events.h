// SPDX-License-Identifier: Apache-2.0
// Events of a stream, committed like batches but without a step number. Every one is idempotent:
// where the head has it already, nothing is committed. MEMBERSHIP is a producer's own:
// ProducerSession::set_membership().
#pragma once

#include "batchloom/model/topology.h"
#include "batchloom/store/head_edit.h"

namespace batchloom::store {

/// Consumers that open with a head that has this SKIP pass over `step`; those already open stop at
/// the damage and must be opened again with `min_slot` = the receipt's slot. `not_found` outside
/// [first_step, next_step); `exhausted` where the head has no room for it (trim first).
Result<EditReceipt> skip_step(const Stream& stream, Step step, const CallOptions& call);

/// From next_step on, batches are planned for `topology`; appending one for another number of HDP
/// ranks is `invalid`. `exhausted` as above.
Result<EditReceipt> set_topology(const Stream& stream, const model::Topology& topology,
                                 const CallOptions& call);

/// The stream ends at next_step: consumers get the end there, and appending is `invalid`.
Result<EditReceipt> end_stream(const Stream& stream, const CallOptions& call);

/// Batches may be appended again.
Result<EditReceipt> reopen_stream(const Stream& stream, const CallOptions& call);

}  // namespace batchloom::store
