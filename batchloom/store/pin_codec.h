// SPDX-License-Identifier: Apache-2.0
// Stored bytes of pins and live cursors: framed FlatBuffers (pin.fbs).
//
// Decoders take hostile bytes, as those of codec.h do, and check that an object is the one that its
// key names. Errors are `corruption` (or `invalid` for a future version) and name key, offset and
// reason.
#pragma once

#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"

namespace batchloom::store {

/// A live cursor and who put it there.
struct StoredCursor {
  LiveCursor cursor;
  /// Random bits of the call that wrote it, so that it knows its own. They also make every content
  /// the only one of its kind: what was replaced never comes back, and with it no etag.
  Nonce nonce;
  friend bool operator==(const StoredCursor&, const StoredCursor&) = default;
};

Bytes encode_pin(const StreamUuid& uuid, const Pin& pin);
/// `name` is what the key says; a pin of another name is `corruption`.
Result<Pin> decode_pin(const StreamUuid& uuid, const PinName& name, ByteSpan object);

Bytes encode_live_cursor(const StreamUuid& uuid, const StoredCursor& stored);
/// `group` is what the key says; a cursor of another group is `corruption`.
Result<StoredCursor> decode_live_cursor(const StreamUuid& uuid, std::string_view group,
                                        ByteSpan object);

}  // namespace batchloom::store
