// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "batchloom/store/batch_reader.h"
#include "batchloom/store/record_check.h"

namespace batchloom::store {

/// How much of a stream is read to verify it.
enum class VerifyDepth {
  kManifest,  ///< Floor, slots, segments, states, memberships; of batch objects names and sizes.
  kRecords,   ///< The index of each batch object, too: its plans, and conservation of records.
  kPayload,   ///< Every byte.
};

/// Checks what stands in the batch objects of a stream, one after the other in step order. One
/// thread at a time.
class BatchCheck {
 public:
  /// `stream` outlives it.
  BatchCheck(const Stream& stream, VerifyDepth depth, RecordCheck records)
      : stream_(stream), reader_(stream), depth_(depth), records_(std::move(records)) {}

  /// Checks the next entry's object, which is stored: what is wrong with it, each text with its
  /// key. Errors are those of the object store.
  Result<std::vector<std::string>> check(const Entry& entry, const CallOptions& call);

  /// Some entries are not checked.
  void skip() { records_.skip(); }

  const RecordCheck& records() const { return records_; }

 private:
  Result<std::vector<std::string>> check_runs(const Entry& entry, const BatchIndex& index,
                                              const CallOptions& call);

  Result<std::string> damage_of(const Entry& entry, const Status& error,
                                const CallOptions& call) const;

  const Stream& stream_;
  BatchReader reader_;
  const VerifyDepth depth_;
  RecordCheck records_;
};

}  // namespace batchloom::store
