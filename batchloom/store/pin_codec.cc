// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/pin_codec.h"

#include <fmt/format.h>

#include "batchloom/store/codec_rows.h"
#include "batchloom/store/pin_generated.h"

namespace batchloom::store {
namespace {

std::string_view text_of(const flatbuffers::String& row) {
  return {row.c_str(), row.size()};
}

/// `corruption` unless `row` is what stands in the key's place for `what`.
Status check_same(const Origin& origin, std::string_view what, const flatbuffers::String& row,
                  std::string_view in_key) {
  if (text_of(row) == in_key) return Status::ok();
  return origin.corrupt(&row, fmt::format("its {} is not the key's, '{}'", what, in_key));
}

}  // namespace

Bytes encode_pin(const StreamUuid& uuid, const Pin& pin) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  const auto group = builder.CreateString(pin.name.group);
  const auto id = builder.CreateString(pin.name.id);
  return finish_frame(ObjectKind::kPin, uuid, builder,
                      fb::CreatePin(builder, group, id, pin.name.nonce.value, pin.step.value))
      .bytes;
}

Result<Pin> decode_pin(const StreamUuid& uuid, const PinName& name, ByteSpan object) {
  const std::string key = pin_key(name);
  const FrameContext context{.key = key, .kind = ObjectKind::kPin, .uuid = &uuid};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Pin>(context, frame.payload()));
  const Origin origin(context, frame.payload().data());
  BL_RETURN_IF_ERROR(check_same(origin, "group", *table->group(), name.group));
  BL_RETURN_IF_ERROR(check_same(origin, "id", *table->id(), name.id));
  if (table->nonce() != name.nonce.value) {
    return origin.corrupt(table, fmt::format("its nonce {:016x} is not the key's", table->nonce()));
  }
  return Pin{.name = name, .step = Step(table->step())};
}

Bytes encode_live_cursor(const StreamUuid& uuid, const StoredCursor& stored) {
  const LiveCursor& cursor = stored.cursor;
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  const auto group = builder.CreateString(cursor.group);
  return finish_frame(
             ObjectKind::kLiveCursor, uuid, builder,
             fb::CreateLiveCursor(builder, group, cursor.keep_from.value, cursor.cursor.value,
                                  cursor.counter, stored.nonce.value, cursor.closed))
      .bytes;
}

Result<StoredCursor> decode_live_cursor(const StreamUuid& uuid, std::string_view group,
                                        ByteSpan object) {
  const std::string key = live_cursor_key(group);
  const FrameContext context{.key = key, .kind = ObjectKind::kLiveCursor, .uuid = &uuid};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::LiveCursor>(context, frame.payload()));
  const Origin origin(context, frame.payload().data());
  BL_RETURN_IF_ERROR(check_same(origin, "group", *table->group(), group));
  return StoredCursor{.cursor = {.group = std::string(group),
                                 .keep_from = Step(table->keep_from()),
                                 .cursor = Step(table->cursor()),
                                 .counter = table->counter(),
                                 .closed = table->closed()},
                      .nonce = Nonce(table->nonce())};
}

}  // namespace batchloom::store
