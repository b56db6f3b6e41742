// SPDX-License-Identifier: Apache-2.0
// A producer of synthetic batches: how one is stored, and the state that is committed with it, so
// that the next run goes on exactly there.
#pragma once

#include "batchloom/base/bytes.h"
#include "batchloom/simulator/synthetic.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::cli {

/// The state after which batch `next` follows.
Bytes synthetic_state(const simulator::SyntheticConfig& config, store::Seq next);

/// Whether a producer whose next batch is `next` may go on with `config` after `state`: ok too
/// where both say that it is new. `invalid` where another configuration or another program wrote
/// it.
Status check_synthetic_state(ByteSpan state, const simulator::SyntheticConfig& config,
                             store::Seq next);

/// Builds batch `seq` and stores it, ready to be committed. Errors: those of the store.
Result<store::PendingBatch> upload_synthetic(const store::Stream& stream,
                                             store::ProducerSession& session,
                                             const simulator::SyntheticBatches& batches,
                                             store::Seq seq, const CallOptions& call);

}  // namespace batchloom::cli
