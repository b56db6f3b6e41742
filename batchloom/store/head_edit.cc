// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head_edit.h"

#include <utility>

#include "batchloom/store/slot_writer.h"

namespace batchloom::store {

Result<EditReceipt> commit_edit(const Stream& stream, ManifestReader& reader, const HeadEdit& edit,
                                const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(HeadPtr base, reader.latest(call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(std::optional<Head> next, edit(base->head));
    if (!next) return EditReceipt{.head = base, .committed = false};
    next->slot = base->head.slot + 1;
    next->txid = stream.random_txid();
    next->writer = {};
    const Txid mine = next->txid;
    BL_ASSIGN_OR_RETURN(const SlotOutcome outcome,
                        write_slot(stream, reader, *base, *std::move(next), call));
    // Taken by us or by another: only the head tells. If it has moved on since, the edit says
    // whether it is true there.
    base = outcome == SlotOutcome::kCommitted ? reader.cached() : nullptr;
    if (base == nullptr) {
      BL_ASSIGN_OR_RETURN(base, reader.latest(call));
    }
    if (base->head.txid != mine) continue;
    stream.counters().counter("store_edits").add();
    return EditReceipt{.head = base, .committed = true};
  }
}

}  // namespace batchloom::store
