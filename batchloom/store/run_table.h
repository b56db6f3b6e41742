// SPDX-License-Identifier: Apache-2.0
// Where each run lies in a batch object: one row of 16 bytes per rank and step, and a CRC per
// rank, so that a rank can fetch and trust its own rows alone.
#pragma once

#include <span>
#include <vector>

#include "batchloom/model/ids.h"
#include "batchloom/store/batch_layout.h"

namespace batchloom::store {

struct RunRow {
  std::uint64_t offset_bytes =
      0;  ///< In the object; a multiple of kColumnAlignBytes, like the size.
  std::uint32_t size_bytes = 0;
  std::uint32_t header_crc = 0;  ///< The CRC of the run header's frame: binds the run to its row.

  Slice slice() const { return {offset_bytes, size_bytes}; }
  friend bool operator==(const RunRow&, const RunRow&) = default;
};

/// No run is larger.
inline constexpr std::uint64_t kRunMaxBytes = UINT32_MAX / kColumnAlignBytes * kColumnAlignBytes;

/// The bytes of one rank's rows with their CRC.
constexpr std::size_t rank_rows_bytes(std::uint32_t steps) {
  return 16 * std::size_t{steps} + 4;
}

/// Where rank's rows lie in an object.
std::uint64_t rank_rows_offset(model::HdpRank rank, std::uint32_t steps);

/// Where the runs begin, behind header, table and padding. Precondition: at most kRunsMax runs.
std::uint64_t first_run_offset(std::uint32_t ranks, std::uint32_t steps);

/// One rank's rows, one per step, and their CRC.
Bytes encode_rank_rows(const BatchIdentity& identity, model::HdpRank rank,
                       std::span<const RunRow> rows);

/// Checks the CRC, which covers identity and rank too, and that the runs follow each other inside
/// the object. `corruption`, naming key, offset and reason. Precondition: rank < object.ranks.
Result<std::vector<RunRow>> decode_rank_rows(const BatchContext& object, model::HdpRank rank,
                                             ByteSpan bytes);

/// Everything before the first run.
struct BatchFront {
  BatchHeader header;
  std::uint64_t runs_end = 0;  ///< Where the index begins.
};

/// Checks header, padding and all ranks' rows: the runs follow each other without gaps. `bytes` are
/// the object's first. Errors as of decode_batch_header().
Result<BatchFront> decode_batch_front(const BatchContext& object, ByteSpan bytes);

}  // namespace batchloom::store
