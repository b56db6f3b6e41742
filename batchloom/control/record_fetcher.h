// SPDX-License-Identifier: Apache-2.0
// Source Loaders' work: the payload of samples, from the indexes that keep ids, or else from the
// shards themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/control/long_records.h"
#include "batchloom/control/source_set.h"
#include "batchloom/control/step_loader.h"

namespace batchloom::control {

struct RecordFetcherOptions {
  std::uint32_t vocab = 0;        ///< Of the stream.
  std::uint32_t patch_bytes = 0;  ///< Of a patch of a picture, decoded.
  /// Of records of several parts that are kept for their next parts. Fewer: where more sources have
  /// such records at once, they are read anew for each order.
  std::uint64_t long_records_bytes = std::uint64_t{256} << 20;
};

/// Thread-safe: each order takes a reader of its own for each shard that it reads. Readers are kept
/// for the next order, a bounded number of them.
class RecordFetcher final : public SampleFetcher {
 public:
  /// `runtime`, `sources` and `pool` outlive it.
  RecordFetcher(Runtime& runtime, const SourceSet& sources, sources::FilePool& pool,
                const RecordFetcherOptions& options);
  ~RecordFetcher() override;

  /// `conflict`, naming the file, where a shard is not what it was when the run began.
  Result<Fetched> fetch(const FetchOrder& order, FetchPlace& place,
                        const CallOptions& call) override;

 private:
  class Order;
  struct ShardName {
    model::SourceId source;
    model::ShardIndex shard;
    friend bool operator==(const ShardName&, const ShardName&) = default;
  };
  struct IdleReader {
    ShardName shard;
    std::unique_ptr<sources::ShardReader> reader;
  };

  Result<std::unique_ptr<sources::ShardReader>> take_reader(const ShardName& shard,
                                                            const CallOptions& call);
  void give_back(const ShardName& shard, std::unique_ptr<sources::ShardReader> reader);

  const SourceSet& sources_;
  sources::FilePool& pool_;
  const std::uint32_t vocab_;
  const std::uint32_t patch_bytes_;
  LongRecords long_records_;
  Mutex mutex_;
  std::vector<IdleReader> idle_ BL_GUARDED_BY(mutex_);  ///< Those used last at the end.
};

}  // namespace batchloom::control
