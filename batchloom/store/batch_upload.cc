// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_upload.h"

#include <fmt/format.h>

#include "batchloom/store/keys.h"
#include "batchloom/store/upload.h"

namespace batchloom::store {

Status check_batch(const Session& session, const PendingBatch& batch) {
  const auto refuse = [&](std::string_view what) {
    return Status::invalid(
        fmt::format("producer {}, batch {}: {}", session.producer, batch.seq.value, what));
  };
  if (batch.steps == 0) return refuse("a batch object has at least one step");
  const std::uint64_t table_bytes = run_table_max_bytes(batch.ranks, batch.steps);
  if (batch.run_table.empty() || batch.run_table.size() == table_bytes) return Status::ok();
  return refuse(fmt::format("a run table of {} bytes; for {} ranks and {} steps it is {} or none",
                            batch.run_table.size(), batch.ranks, batch.steps, table_bytes));
}

Result<PendingBatch> upload_batch(const Stream& stream, const Session& session,
                                  const BatchInfo& info, std::span<const ByteSpan> parts,
                                  const CallOptions& call) {
  PendingBatch batch{.seq = info.seq,
                     .nonce = stream.random_nonce(),
                     .steps = info.steps,
                     .ranks = info.ranks,
                     .run_table = info.run_table,
                     .state_after = {}};
  BL_RETURN_IF_ERROR(check_batch(session, batch));
  for (const ByteSpan part : parts) batch.size_bytes += part.size();
  const DataName name{DataKind::kBatch, session.producer, session.term, batch.seq, batch.nonce};
  BL_RETURN_IF_ERROR(upload_unique(stream, data_key(name), parts, call));
  return batch;
}

}  // namespace batchloom::store
