// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"

namespace batchloom::store {
namespace {

constexpr std::string_view kMagic = "BLSO";

constexpr std::size_t kFrameMagicAt = 0;
constexpr std::size_t kFrameKindAt = 4;
constexpr std::size_t kFrameVersionAt = 6;
constexpr std::size_t kFrameUuidAt = 8;
constexpr std::size_t kFrameLengthAt = 24;
constexpr std::size_t kFrameCrcAt = 32;
constexpr std::size_t kFrameZeroAt = 36;

/// Of everything that stands before the CRC, and the payload.
std::uint32_t frame_crc(ByteSpan object) {
  return crc32c(object.subspan(kFrameBytes), crc32c(object.first(kFrameCrcAt)));
}

StreamUuid uuid_of(ByteSpan object) {
  StreamUuid uuid;
  std::copy_n(object.begin() + kFrameUuidAt, uuid.bytes.size(), uuid.bytes.begin());
  return uuid;
}

Status corrupt(const FrameContext& context, std::size_t offset, std::string_view reason) {
  return corrupt_at(context.place(), offset, reason);
}

/// Whose object is it, and can this build read it? Precondition: a whole header.
Status check_identity(const FrameContext& context, ByteSpan object) {
  if (as_text(object.subspan(kFrameMagicAt, kMagic.size())) != kMagic) {
    return corrupt(context, kFrameMagicAt, "not an object of a batch store (the magic is missing)");
  }
  const auto kind = load_le<std::uint16_t>(&object[kFrameKindAt]);
  if (kind != static_cast<std::uint16_t>(context.kind)) {
    return corrupt(
        context, kFrameKindAt,
        fmt::format("holds a {} (kind {}), expected a {}", to_string(static_cast<ObjectKind>(kind)),
                    kind, to_string(context.kind)));
  }
  const auto version = load_le<std::uint16_t>(&object[kFrameVersionAt]);
  if (version != kFormatVersion) {
    return unknown_version_at(context.place(), kFrameVersionAt, to_string(context.kind), version);
  }
  const StreamUuid uuid = uuid_of(object);
  if (context.uuid != nullptr && uuid != *context.uuid) {
    return corrupt(context, kFrameUuidAt,
                   fmt::format("belongs to stream {}, expected {}", uuid.to_string(),
                               context.uuid->to_string()));
  }
  return Status::ok();
}

/// Is it all there, and undamaged? Precondition: a whole header.
Status check_integrity(const FrameContext& context, ByteSpan object) {
  const auto stated = load_le<std::uint64_t>(&object[kFrameLengthAt]);
  const std::uint64_t actual = object.size() - kFrameBytes;
  if (actual != stated) {
    return corrupt(context, kFrameLengthAt,
                   fmt::format("{}: states a payload of {} bytes, has {}",
                               actual < stated ? "truncated" : "too long", stated, actual));
  }
  if (load_le<std::uint32_t>(&object[kFrameZeroAt]) != 0) {
    return corrupt(context, kFrameZeroAt, "reserved bytes are not zero");
  }
  const std::uint32_t stored = stated_crc(object);
  if (const std::uint32_t computed = frame_crc(object); computed != stored) {
    return corrupt(context, kFrameCrcAt,
                   fmt::format("damaged: CRC-32C is {:08x}, stored {:08x}", computed, stored));
  }
  return Status::ok();
}

}  // namespace

std::string_view to_string(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kFormat: return "FORMAT";
    case ObjectKind::kHead: return "head";
    case ObjectKind::kSegment: return "segment";
    case ObjectKind::kState: return "state";
    case ObjectKind::kFloor: return "floor";
    case ObjectKind::kPin: return "pin";
    case ObjectKind::kLiveCursor: return "live cursor";
    case ObjectKind::kRun: return "run header";
    case ObjectKind::kBatchIndex: return "batch index";
    case ObjectKind::kMembership: return "membership";
  }
  return "unknown object";
}

Bytes encode_frame(ObjectKind kind, const StreamUuid& uuid, ByteSpan payload) {
  Bytes object(kFrameBytes);
  object.reserve(kFrameBytes + payload.size());
  std::copy_n(as_bytes(kMagic).begin(), kMagic.size(), object.begin() + kFrameMagicAt);
  store_le(static_cast<std::uint16_t>(kind), &object[kFrameKindAt]);
  store_le(kFormatVersion, &object[kFrameVersionAt]);
  std::copy_n(uuid.bytes.begin(), uuid.bytes.size(), object.begin() + kFrameUuidAt);
  store_le(std::uint64_t{payload.size()}, &object[kFrameLengthAt]);
  object.insert(object.end(), payload.begin(), payload.end());
  store_le(frame_crc(object), &object[kFrameCrcAt]);
  return object;
}

std::uint32_t stated_crc(ByteSpan object) {
  return load_le<std::uint32_t>(&object[kFrameCrcAt]);
}

std::uint64_t stated_size(ByteSpan bytes) {
  const auto payload = load_le<std::uint64_t>(&bytes[kFrameLengthAt]);
  return payload > UINT64_MAX - kFrameBytes ? UINT64_MAX : payload + kFrameBytes;
}

Result<Frame> decode_frame(const FrameContext& context, ByteSpan object) {
  if (object.empty()) return corrupt(context, 0, "the object is empty");
  if (object.size() < kFrameBytes) {
    return corrupt(context, object.size(),
                   fmt::format("truncated: ends inside the frame of {} bytes", kFrameBytes));
  }
  BL_RETURN_IF_ERROR(check_identity(context, object));
  BL_RETURN_IF_ERROR(check_integrity(context, object));
  return Frame{
      .uuid = uuid_of(object), .crc = stated_crc(object), .payload = object.subspan(kFrameBytes)};
}

}  // namespace batchloom::store
