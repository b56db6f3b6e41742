// SPDX-License-Identifier: Apache-2.0
// What the codecs of heads and segments share: opening a framed FlatBuffer, and the rows for names,
// entries and segment references; and a head's rows for events (event_rows.cc). Included by codec
// sources only.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/frame.h"
#include "batchloom/store/head.h"

namespace batchloom::store::fb {
struct Entry;
struct MembershipRow;
struct SegmentRef;
struct TopologyRow;
struct TrimIntent;
}  // namespace batchloom::store::fb

namespace batchloom::store {

template <class Row>
using TableVector = flatbuffers::Vector<flatbuffers::Offset<Row>>;
template <class Struct>
using StructVector = flatbuffers::Vector<const Struct*>;
using ByteVector = flatbuffers::Vector<std::uint8_t>;
using StepVector = flatbuffers::Vector<std::uint64_t>;
using StringVector = TableVector<flatbuffers::String>;

/// A payload's place in its object, so that every complaint names key, byte and reason. Borrows
/// both.
class Origin {
 public:
  Origin(const FrameContext& frame, const std::byte* payload)
      : part_(frame.place()), payload_(payload) {}

  /// `corruption` at `row`, which lies in the payload.
  Status corrupt(const void* row, std::string_view reason) const;

  /// `error`, which the decoder of what stands in `row` met: the same kind, and this place.
  Status at(const void* row, const Status& error) const;

 private:
  std::uint64_t offset_of(const void* row) const {
    return kFrameBytes + static_cast<std::size_t>(static_cast<const std::byte*>(row) - payload_);
  }

  ObjectPart part_;
  const std::byte* payload_;
};

/// A framed payload on an 8-byte boundary: the object's own bytes, or a copy where they lie askew.
class AlignedFrame {
 public:
  AlignedFrame(AlignedFrame&&) = default;
  AlignedFrame& operator=(AlignedFrame&&) = default;

  /// Checks the frame: errors as of `decode_frame`. The result borrows `object`.
  static Result<AlignedFrame> open(const FrameContext& context, ByteSpan object);

  std::uint32_t crc() const { return frame_.crc; }
  const StreamUuid& uuid() const { return frame_.uuid; }
  ByteSpan payload() const { return frame_.payload; }

 private:
  AlignedFrame() = default;

  Frame frame_;
  std::vector<std::uint64_t> copy_;
};

/// Whether a referenced object is the one meant: `corruption` where its size or its (verified) CRC
/// differs from the reference's.
Status check_reference(const FrameContext& context, ByteSpan object, std::uint32_t size_bytes,
                       std::uint32_t crc);

/// The payload's root table, after its structure was verified with limits that follow from the
/// length: no object makes a reader visit more tables than its bytes could hold.
template <class Root>
Result<const Root*> verified_root(const FrameContext& context, ByteSpan payload) {
  constexpr std::size_t kMinTableBytes = 8;  // A table without fields and the offset to it.
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 4;
  limits.max_tables = static_cast<flatbuffers::uoffset_t>(payload.size() / kMinTableBytes + 1);
  const auto* data = reinterpret_cast<const std::uint8_t*>(payload.data());
  if (payload.size() < FLATBUFFERS_MAX_BUFFER_SIZE &&
      flatbuffers::Verifier(data, payload.size(), limits).VerifyBuffer<Root>()) {
    return flatbuffers::GetRoot<Root>(data);
  }
  return Origin(context, payload.data()).corrupt(data, "the payload is not well-formed");
}

/// A frame, and its CRC beside it.
Encoded encode_crc_frame(ObjectKind kind, const StreamUuid& uuid, ByteSpan payload);

/// The frame around what `builder` holds, with `root` as its root.
template <class Root>
Encoded finish_frame(ObjectKind kind, const StreamUuid& uuid,
                     flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Root> root) {
  builder.Finish(root);
  return encode_crc_frame(kind, uuid,
                          std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

/// Opaque bytes; no vector at all where they are empty.
flatbuffers::Offset<ByteVector> encode_bytes(flatbuffers::FlatBufferBuilder& builder,
                                             ByteSpan bytes);
/// The inverse; `row` may be null.
Bytes decode_bytes(const ByteVector* row);

/// The names that an object's rows refer to, each once, in order. Borrows them.
class NameTable {
 public:
  void add(std::string_view name);
  void add(std::span<const Entry> entries);
  /// Precondition: added.
  std::uint32_t index(std::string_view name) const;
  flatbuffers::Offset<StringVector> encode(flatbuffers::FlatBufferBuilder& builder) const;

 private:
  std::vector<std::string_view> names_;
};

flatbuffers::Offset<TableVector<fb::Entry>> encode_entries(flatbuffers::FlatBufferBuilder& builder,
                                                           const NameTable& names,
                                                           std::span<const Entry> entries);
flatbuffers::Offset<StructVector<fb::SegmentRef>> encode_refs(
    flatbuffers::FlatBufferBuilder& builder, std::span<const SegmentRef> refs);

/// The names of an object, checked to be names in ascending order. Borrows the payload.
class DecodedNames {
 public:
  static Result<DecodedNames> decode(const Origin& origin, const StringVector& rows);

  /// The name that `row` refers to by `index`.
  Result<std::string_view> at(const Origin& origin, const void* row, std::uint32_t index) const;

 private:
  std::vector<std::string_view> names_;
};

/// Entries that are dense among themselves and fit into an object made for `slot`.
Result<std::vector<Entry>> decode_entries(const Origin& origin, const DecodedNames& names,
                                          Slot slot, const TableVector<fb::Entry>& rows);
/// Segment references of one level in ascending order that fit into an object made for `slot`.
Result<std::vector<SegmentRef>> decode_refs(const Origin& origin, std::uint32_t level, Slot slot,
                                            const StructVector<fb::SegmentRef>& rows);

/// Whether a verified vector's elements are aligned. The verifier of FlatBuffers 2.0 looks at the
/// alignment of its length only.
template <class Element>
bool is_aligned(const flatbuffers::Vector<Element>& rows) {
  constexpr std::size_t kAlignment = alignof(std::remove_pointer_t<Element>);
  return rows.size() == 0 || reinterpret_cast<std::uintptr_t>(rows.Data()) % kAlignment == 0;
}

flatbuffers::Offset<TableVector<fb::TopologyRow>> encode_topologies(
    flatbuffers::FlatBufferBuilder& builder, std::span<const TopologyRow> topologies);
flatbuffers::Offset<TableVector<fb::MembershipRow>> encode_memberships(
    flatbuffers::FlatBufferBuilder& builder, const NameTable& names,
    std::span<const MembershipRow> memberships);
flatbuffers::Offset<StepVector> encode_steps(flatbuffers::FlatBufferBuilder& builder,
                                             std::span<const Step> steps);

/// Topologies in ascending order, none from above `next_step`.
Result<std::vector<TopologyRow>> decode_topologies(const Origin& origin, Step next_step,
                                                   const TableVector<fb::TopologyRow>& rows);
/// Ascending steps within [first_step, next_step).
Result<std::vector<Step>> decode_skipped(const Origin& origin, Step first_step, Step next_step,
                                         const StepVector& rows);
/// Memberships in ascending order that fit into an object made for `slot`.
Result<std::vector<MembershipRow>> decode_memberships(const Origin& origin,
                                                      const DecodedNames& names, Slot slot,
                                                      const TableVector<fb::MembershipRow>& rows);
/// `row` may be null.
Result<std::optional<TrimIntent>> decode_trim_intent(const Origin& origin, Slot slot,
                                                     const fb::TrimIntent* row);

}  // namespace batchloom::store
