// SPDX-License-Identifier: Apache-2.0
// Reading batch objects: a rank's runs with one request, and the index for everybody else.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/store/batch_index.h"
#include "batchloom/store/read_buffers.h"
#include "batchloom/store/run.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// Pieces, and the buffers that their spans point into.
struct FetchedPieces {
  std::vector<RunPiece> pieces;
  std::vector<std::shared_ptr<const Bytes>> buffers;
};

/// Reads batch objects of one stream. Thread-safe; keeps nothing but the run table rows that it had
/// to fetch, and the memory of the last few runs that were let go. Damage (and a missing object) is
/// read once more, then `corruption`, naming key, offset and reason; an object whose step was
/// trimmed is missing, too: the caller knows.
class BatchReader {
 public:
  /// Rows kept, most recently used first.
  static constexpr std::size_t kDefaultRowsCacheBytes = std::size_t{1} << 20;

  explicit BatchReader(const Stream& stream, std::size_t rows_cache_bytes = kDefaultRowsCacheBytes)
      : stream_(stream), cache_bytes_max_(rows_cache_bytes) {}

  /// The rank's runs of all steps of `entry`: one GET, and a second one for the rows where the
  /// entry does not carry them and they are not cached. `invalid` for a rank that the entry lacks.
  Result<std::vector<Run>> read_runs(const Entry& entry, model::HdpRank rank,
                                     const CallOptions& call);

  /// The rank's run of one step of the entry: its bytes alone, with as many GETs.
  Result<Run> read_run(const Entry& entry, std::uint32_t position, model::HdpRank rank,
                       const CallOptions& call);

  /// The index, and all that stands around the runs verified on the way: two GETs, or three where
  /// the index is larger than kTailBytes.
  Result<std::shared_ptr<const BatchIndex>> read_index(const Entry& entry, const CallOptions& call);

  /// Pieces of a step of the index, each verified, in the order asked: ranges with gaps of at most
  /// kJoinGapBytes are fetched together, one GET after the other. `invalid` for another object's
  /// index, and for a position or a piece that it lacks.
  Result<FetchedPieces> read_pieces(const Entry& entry, const BatchIndex& index,
                                    std::uint32_t position, std::span<const std::uint32_t> pieces,
                                    const CallOptions& call);

 private:
  struct Cached {
    DataName object;
    model::HdpRank rank;
    std::vector<RunRow> rows;

    std::size_t bytes() const;
  };
  using CacheKey = std::pair<std::uint64_t, std::uint32_t>;  // Nonce and rank.

  Result<std::vector<RunRow>> rows_of(const Entry& entry, model::HdpRank rank,
                                      const BatchContext& object, const CallOptions& call);
  Result<std::vector<Run>> fetch_runs(const BatchContext& object, model::HdpRank rank,
                                      std::span<const RunRow> rows, std::uint32_t first_position,
                                      const CallOptions& call);
  std::vector<RunRow> lookup(const DataName& object, model::HdpRank rank);
  void remember(Cached cached);

  const Stream& stream_;
  const std::size_t cache_bytes_max_;
  ReadBuffers buffers_;  ///< Of runs.
  Mutex mutex_;
  std::size_t cache_bytes_ BL_GUARDED_BY(mutex_) = 0;
  std::list<Cached> recent_ BL_GUARDED_BY(mutex_);
  std::map<CacheKey, std::list<Cached>::iterator> by_key_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::store
