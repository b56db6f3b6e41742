// SPDX-License-Identifier: Apache-2.0
// Commits by nobody in particular: events of the stream, and trimming. They take no step number and
// belong to no producer, so the head's writer is empty.
//
//  1. Read the newest head.
//  2. Compute the head after it, and store what it is to name; or find that what is wanted is true
//     already.
//  3. Take the next slot (slot_writer.h). After a lost race do all of it again.
//
// A lost reply is settled by the next round: the newest head carries this attempt's txid, or else
// step 2 finds that what landed is true already.
#pragma once

#include <functional>
#include <optional>

#include "batchloom/store/manifest_reader.h"

namespace batchloom::store {

/// What an edit wants of a head: the head after it (slot, chain, txid and writer are filled in for
/// it), or nullopt where nothing has to change, or an error that ends the attempt.
using HeadEdit = std::function<Result<std::optional<Head>>(const Head&)>;

struct EditReceipt {
  HeadPtr head;  ///< In which the edit holds: the one written, or the one that had it.
  /// This call wrote `head`. False where the edit was true already; also if this call had made it
  /// true, the reply was lost, and somebody has built on it since.
  bool committed = false;
};

/// Applies `edit` to the newest head. Errors: the edit's own; those of the store, with
/// `unknown_outcome` where the edit may have been committed. Safe to repeat. Others may share
/// `reader`.
Result<EditReceipt> commit_edit(const Stream& stream, ManifestReader& reader, const HeadEdit& edit,
                                const CallOptions& call);

}  // namespace batchloom::store
