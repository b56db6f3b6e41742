// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/record_tensors.h"

#include <fmt/format.h>

namespace batchloom::control {

store::TensorInfo picture_tensor(const sources::PictureGrid& grid) {
  return {.name = std::string(store::kPictureTensor),
          .type = store::TensorType::kU8,
          .shape = {grid.rows, grid.unit_px, grid.columns, grid.unit_px, 3}};
}

Result<std::optional<sources::BadRecord>> RecordTensors::read(sources::ShardReader& reader,
                                                              std::uint64_t record,
                                                              const CallOptions& call) {
  tensors_.clear();
  BL_ASSIGN_OR_RETURN(auto bad, reader.read_pictures(record, call, pictures_));
  if (bad) return bad;
  std::uint64_t bytes = 0;
  for (const sources::RecordPicture& picture : pictures_) bytes += picture.grid.bytes();
  pixels_.resize(bytes);
  std::span<std::byte> rest(pixels_);
  for (const sources::RecordPicture& picture : pictures_) {
    const std::span<std::byte> out = rest.first(picture.grid.bytes());
    rest = rest.subspan(out.size());
    const Status decoded = sources::decode_picture(picture.encoded, picture.grid, out);
    if (decoded.is(ErrorKind::kCorruption)) {
      return std::optional(
          sources::bad_record({.shard = reader.name(), .record = record, .offset_bytes = 0},
                              sources::BadRecordReason::kPicture, decoded.message()));
    }
    BL_RETURN_IF_ERROR(decoded);
    tensors_.push_back(
        {.token = picture.token, .info = picture_tensor(picture.grid), .bytes = out});
  }
  return bad;
}

}  // namespace batchloom::control
