// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/record_tensors.h"

#include <string>

namespace batchloom::control {

store::TensorInfo picture_tensor(const sources::PictureGrid& grid) {
  return {.name = std::string(store::kPictureTensor),
          .type = store::TensorType::kU8,
          .shape = {grid.rows, grid.unit_px, grid.columns, grid.unit_px, 3}};
}

Result<std::optional<sources::BadRecord>> RecordTensors::read(sources::ShardReader& reader,
                                                              const Place& place,
                                                              const CallOptions& call) {
  tensors_.clear();
  BL_ASSIGN_OR_RETURN(auto bad, reader.read_pictures(place.record, call, pictures_));
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
      const sources::RecordName name{
          .shard = reader.name(), .record = place.record, .offset_bytes = place.offset_bytes};
      return std::optional(sources::bad_record(name, sources::BadRecordReason::kPicture,
                                               "its picture: " + std::string(decoded.message())));
    }
    BL_RETURN_IF_ERROR(decoded);
    tensors_.push_back(
        {.token = picture.token, .info = picture_tensor(picture.grid), .bytes = out});
  }
  return bad;
}

}  // namespace batchloom::control
