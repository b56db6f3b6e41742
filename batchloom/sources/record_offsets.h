// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "batchloom/base/status.h"
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

/// Called with each record's place, in order; an error ends the scan.
using PlaceSink = std::function<Status(const RecordPlace&)>;

/// The places that `scan` finds, in memory, 16 bytes for each; what errors call the shard is
/// `name`. `exhausted` above `max_bytes` of them; else what `scan` says.
Result<std::shared_ptr<const RecordOffsets>> keep_offsets(
    std::string_view name, std::uint64_t max_bytes,
    const std::function<Status(const PlaceSink& found)>& scan);

}  // namespace batchloom::sources
