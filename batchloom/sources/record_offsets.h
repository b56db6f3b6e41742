// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

/// Where the records of a shard lie, for formats that do not say it themselves: from a sidecar
/// index, or from a scan of the shard. Immutable; thread-safe; no I/O that can fail.
class RecordOffsets {
 public:
  virtual ~RecordOffsets() = default;

  virtual std::uint64_t count() const = 0;
  /// Precondition: `record` is below count(). The place may lie outside of the shard, if it was
  /// taken of another: whoever reads looks at that.
  virtual RecordPlace place(std::uint64_t record) const = 0;
};

}  // namespace batchloom::sources
