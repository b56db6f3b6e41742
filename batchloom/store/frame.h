// SPDX-License-Identifier: Apache-2.0
// The frame around every stored object that is not run data.
//
//   offset  size  field
//        0     4  magic "BLSO"
//        4     2  kind
//        6     2  format version of that kind
//        8    16  stream uuid
//       24     8  length of the payload in bytes
//       32     4  CRC-32C of bytes 0..31 followed by the payload
//       36     4  zero
//       40     -  payload (a FlatBuffer, or opaque bytes); the object ends with it
//
// Integers are little-endian. Version 0 makes no promise.
#pragma once

#include <cstdint>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/ids.h"

namespace batchloom::store {

/// Part of the format: never renumber.
enum class ObjectKind : std::uint16_t {
  kFormat = 1,
  kHead = 2,
  kSegment = 3,
  kState = 4,
  kFloor = 5,
  kPin = 6,
  kLiveCursor = 7,
  kRun = 8,         ///< The header of a run; it stands inside a batch object.
  kBatchIndex = 9,  ///< Inside a batch object, too.
  kMembership = 10,
};

std::string_view to_string(ObjectKind kind);

inline constexpr std::size_t kFrameBytes = 40;
inline constexpr std::uint16_t kFormatVersion = 1;

/// Where an object came from, for error messages and for the check against foreign objects.
struct FrameContext {
  std::string_view key;
  ObjectKind kind = ObjectKind::kFormat;
  /// Null: any stream (only FORMAT is read before the uuid is known).
  const StreamUuid* uuid = nullptr;
  /// Of a frame inside a batch object: what it is ("index"), and where it begins there.
  std::string_view part = {};
  std::uint64_t begin_bytes = 0;

  ObjectPart place() const { return {.key = key, .name = part, .begin_bytes = begin_bytes}; }
};

struct Frame {
  StreamUuid uuid;
  std::uint32_t crc = 0;
  ByteSpan payload;  ///< Borrowed from the object; 8-byte aligned where the object is.
};

/// The framed object.
Bytes encode_frame(ObjectKind kind, const StreamUuid& uuid, ByteSpan payload);

/// The CRC that a frame states. Precondition: `object` has a whole frame.
std::uint32_t stated_crc(ByteSpan object);

/// The size of the whole framed object that `bytes` begin with, as its frame states it; UINT64_MAX
/// where that is beyond counting. Precondition: `bytes` hold a whole frame.
std::uint64_t stated_size(ByteSpan bytes);

/// Checks magic, kind, version, stream, length and CRC, in this order. Errors name key, offset and
/// reason: `corruption` for empty, truncated, over-long or damaged objects and for objects of
/// another kind or stream; `invalid` for a version this build cannot read ("upgrade").
Result<Frame> decode_frame(const FrameContext& context, ByteSpan object);

}  // namespace batchloom::store
