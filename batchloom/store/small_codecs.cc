// SPDX-License-Identifier: Apache-2.0
// Producer states, membership keys, the floor, and FORMAT.
#include "batchloom/store/codec.h"
#include "batchloom/store/codec_rows.h"
#include "batchloom/store/manifest_generated.h"

namespace batchloom::store {
namespace {

/// The opaque bytes of the very object that a reference means.
Result<Bytes> decode_opaque(const FrameContext& context, std::uint32_t size_bytes,
                            std::uint32_t crc, ByteSpan object) {
  BL_ASSIGN_OR_RETURN(const Frame frame, decode_frame(context, object));
  BL_RETURN_IF_ERROR(check_reference(context, object, size_bytes, crc));
  return Bytes(frame.payload.begin(), frame.payload.end());
}

}  // namespace

Encoded encode_state(const StreamUuid& uuid, ByteSpan state) {
  return encode_crc_frame(ObjectKind::kState, uuid, state);
}

Result<Bytes> decode_state(const StreamUuid& uuid, const ProducerRow& row, ByteSpan object) {
  const std::string key = data_key(row.state_object());
  const FrameContext context{.key = key, .kind = ObjectKind::kState, .uuid = &uuid};
  return decode_opaque(context, row.state.ref->size_bytes, row.state.ref->crc, object);
}

Encoded encode_membership(const StreamUuid& uuid, ByteSpan keys) {
  return encode_crc_frame(ObjectKind::kMembership, uuid, keys);
}

Result<Bytes> decode_membership(const StreamUuid& uuid, const MembershipRow& row, ByteSpan object) {
  const std::string key = data_key(row.object());
  const FrameContext context{.key = key, .kind = ObjectKind::kMembership, .uuid = &uuid};
  return decode_opaque(context, row.ref->size_bytes, row.ref->crc, object);
}

Bytes encode_floor(const StreamUuid& uuid, Slot floor) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  return finish_frame(ObjectKind::kFloor, uuid, builder, fb::CreateFloor(builder, floor.value))
      .bytes;
}

Result<Slot> decode_floor(const StreamUuid& uuid, ByteSpan object) {
  const FrameContext context{.key = kFloorKey, .kind = ObjectKind::kFloor, .uuid = &uuid};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Floor>(context, frame.payload()));
  return Slot(table->slot());
}

Bytes encode_format(const StreamFormat& format) {
  flatbuffers::FlatBufferBuilder builder;
  const auto created_by = builder.CreateString(format.created_by);
  return finish_frame(ObjectKind::kFormat, format.uuid, builder,
                      fb::CreateFormat(builder, created_by))
      .bytes;
}

Result<StreamFormat> decode_format(ByteSpan object) {
  const FrameContext context{.key = kFormatKey, .kind = ObjectKind::kFormat, .uuid = nullptr};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Format>(context, frame.payload()));
  return StreamFormat{.uuid = frame.uuid(), .created_by = table->created_by()->str()};
}

}  // namespace batchloom::store
