// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/construction/record_cut.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/store/tensor.h"

namespace batchloom::control {

/// As store::kPictureTensor says.
store::TensorInfo picture_tensor(const sources::PictureGrid& grid);

/// The pictures of a record, decoded. One thread at a time; keeps a buffer from record to record.
class RecordTensors {
 public:
  /// A record, and where it lies in its shard: for messages.
  struct Place {
    std::uint64_t record = 0;
    std::uint64_t offset_bytes = 0;
  };

  /// Reads and decodes those of the record: nullopt, or why it is bad. Blocks. Errors: those of
  /// reading.
  Result<std::optional<sources::BadRecord>> read(sources::ShardReader& reader, const Place& place,
                                                 const CallOptions& call);

  /// Of the last record that was read, until the next one is.
  std::span<const construction::RecordTensor> tensors() const { return tensors_; }

 private:
  std::vector<sources::RecordPicture> pictures_;
  Bytes pixels_;
  std::vector<construction::RecordTensor> tensors_;
};

}  // namespace batchloom::control
