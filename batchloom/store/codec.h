// SPDX-License-Identifier: Apache-2.0
// Stored bytes of heads, segments, states, the floor and FORMAT: framed FlatBuffers (manifest.fbs).
//
// Decoders take hostile bytes: the frame's CRC, then the FlatBuffers verifier with limits that
// follow from the length, then every rule that the structs state (order, density, ranges, names).
// Errors are `corruption` (or `invalid` for a future version) and name key, offset and reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/store/frame.h"
#include "batchloom/store/head.h"

namespace batchloom::store {

/// Levels of segments that a head can hold: arity 2 fills them after 2^16 segments, arity 64 never.
inline constexpr std::uint32_t kMaxLevels = 16;

/// An encoded object and its frame's CRC.
struct Encoded {
  Bytes bytes;
  std::uint32_t crc = 0;
};

Encoded encode_head(const StreamUuid& uuid, const Head& head);
/// `slot` is the one in the key; a head that says another is `corruption`.
Result<StoredHead> decode_head(const StreamUuid& uuid, Slot slot, ByteSpan object);

Encoded encode_segment(const StreamUuid& uuid, const Segment& segment);
/// Checks size, CRC, level and first step against `ref` too.
Result<Segment> decode_segment(const StreamUuid& uuid, const SegmentRef& ref, ByteSpan object);

Encoded encode_state(const StreamUuid& uuid, ByteSpan state);
/// Checks size and CRC against `row`'s reference too. Precondition: row.state.ref is set.
Result<Bytes> decode_state(const StreamUuid& uuid, const ProducerRow& row, ByteSpan object);

/// Membership keys that stand beside the head.
Encoded encode_membership(const StreamUuid& uuid, ByteSpan keys);
/// Checks size and CRC against `row`'s reference too. Precondition: row.ref is set.
Result<Bytes> decode_membership(const StreamUuid& uuid, const MembershipRow& row, ByteSpan object);

Bytes encode_floor(const StreamUuid& uuid, Slot floor);
Result<Slot> decode_floor(const StreamUuid& uuid, ByteSpan object);

/// FORMAT: written once by `store init`, read by everybody before anything else.
struct StreamFormat {
  StreamUuid uuid;
  std::string created_by;  ///< Name and version of the program.
};
Bytes encode_format(const StreamFormat& format);
Result<StreamFormat> decode_format(ByteSpan object);

/// Upper bounds of what each adds to an encoded head, for keeping budgets without encoding.
/// Property-tested.
std::size_t encoded_bound(const Entry& entry);
/// Whatever the row's state is or becomes; an inline state's own bytes are counted apart.
std::size_t encoded_bound(const ProducerRow& row);
std::size_t encoded_bound(const SegmentRef& ref);
std::size_t encoded_bound(const TopologyRow& row);
std::size_t encoded_bound(const MembershipRow& row);
/// Of a step that is skipped.
std::size_t encoded_bound(Step skipped);
/// What a head takes besides tail, rows, states, segments and events.
inline constexpr std::size_t kHeadFixedBytes = 1024;

}  // namespace batchloom::store
