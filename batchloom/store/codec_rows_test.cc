// SPDX-License-Identifier: Apache-2.0
// What no value of ours can be encoded to: payloads that are changed in place.
#include "batchloom/store/codec_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "batchloom/store/codec.h"
#include "batchloom/store/manifest_generated.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

template <class Row>
flatbuffers::Table& changeable(const Row& row) {
  return reinterpret_cast<flatbuffers::Table&>(const_cast<Row&>(row));
}

/// What the decoder says about a small head after `change`.
Status complaint_after(const std::function<void(Bytes& payload, const fb::Head& table)>& change) {
  const Bytes object = encode_head(kTestUuid, small_head()).bytes;
  Bytes payload(object.begin() + kFrameBytes, object.end());
  change(payload, *flatbuffers::GetRoot<fb::Head>(payload.data()));
  return decode_head(kTestUuid, Slot(9), encode_frame(ObjectKind::kHead, kTestUuid, payload))
      .status();
}

void expect_corrupt_row(const Status& status, std::string_view reason) {
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << status.to_string();
  EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
}

TEST(CodecRows, NamesStandInOrder) {
  const Status status = complaint_after([](Bytes& payload, const fb::Head&) {
    const ByteSpan name = as_bytes("alpha");
    *std::search(payload.begin(), payload.end(), name.begin(), name.end()) = std::byte{'z'};
  });
  expect_corrupt_row(status, "name 'beta' stands after 'zlpha'");
}

TEST(CodecRows, NamesDoNotRepeat) {
  const Status status = complaint_after([](Bytes&, const fb::Head& table) {
    auto* offsets =
        reinterpret_cast<std::uint32_t*>(const_cast<std::uint8_t*>(table.names()->Data()));
    offsets[1] = offsets[0] - static_cast<std::uint32_t>(sizeof(std::uint32_t));
  });
  expect_corrupt_row(status, "name 'alpha' stands after 'alpha'");
}

TEST(CodecRows, NamesAreReferredToWithinTheirTable) {
  const Status entry = complaint_after([](Bytes&, const fb::Head& table) {
    changeable(*table.tail()->Get(1)).SetField<std::uint32_t>(fb::Entry::VT_PRODUCER, 3, 0);
  });
  expect_corrupt_row(entry, "refers to name 3 of 3");
  const Status producer = complaint_after([](Bytes&, const fb::Head& table) {
    changeable(*table.producers()->Get(1))
        .SetField<std::uint32_t>(fb::ProducerRow::VT_PRODUCER, 3, 0);
  });
  expect_corrupt_row(producer, "refers to name 3 of 3");
}

TEST(CodecRows, MissingPartsAreNoHead) {
  for (const auto field :
       {fb::Head::VT_TXID, fb::Head::VT_WRITER, fb::Head::VT_TOPOLOGIES, fb::Head::VT_SKIPPED,
        fb::Head::VT_NAMES, fb::Head::VT_PRODUCERS, fb::Head::VT_LEVELS, fb::Head::VT_TAIL}) {
    const Status status = complaint_after([field](Bytes&, const fb::Head& table) {
      auto* vtable = const_cast<std::uint8_t*>(changeable(table).GetVTable());
      flatbuffers::WriteScalar<flatbuffers::voffset_t>(vtable + field, 0);
    });
    expect_corrupt_row(status,
                       "m/00000000000000000009: at byte 40: the payload is not well-formed");
  }
}

TEST(CodecRows, TopologiesHaveAxes) {
  const Status status = complaint_after([](Bytes&, const fb::Head& table) {
    auto* vtable = const_cast<std::uint8_t*>(changeable(*table.topologies()->Get(0)).GetVTable());
    flatbuffers::WriteScalar<flatbuffers::voffset_t>(vtable + fb::TopologyRow::VT_AXES, 0);
  });
  expect_corrupt_row(status, "the payload is not well-formed");
}

/// The one thing that the verifier leaves out; see is_aligned.
TEST(CodecRows, SkippedStepsAreAligned) {
  const Status status = complaint_after([](Bytes&, const fb::Head& table) {
    // Four bytes further on, the low half of the first step reads as the vector's length.
    auto* offset = changeable(table).GetAddressOf(fb::Head::VT_SKIPPED);
    flatbuffers::WriteScalar(offset, flatbuffers::ReadScalar<std::uint32_t>(offset) + 4);
    flatbuffers::WriteScalar(const_cast<std::uint8_t*>(table.skipped()->Data()) - 4, 1U);
  });
  expect_corrupt_row(status, "skipped steps are not aligned");
}

TEST(CodecRows, ReferencesAreAligned) {
  Segment segment{.level = 1,
                  .first_step = Step(5),
                  .end_step = Step(9),
                  .entries = {},
                  .children = {{Slot(1), 0, Nonce(1), Step(5), 400, 3},
                               {Slot(1), 0, Nonce(2), Step(7), 400, 4}}};
  Bytes object = encode_segment(kTestUuid, segment).bytes;
  Bytes payload(object.begin() + kFrameBytes, object.end());
  const auto& table = *flatbuffers::GetRoot<fb::Segment>(payload.data());
  // Four bytes further on, the low half of the first slot reads as the vector's length: 1.
  auto* offset = changeable(table).GetAddressOf(fb::Segment::VT_CHILDREN);
  flatbuffers::WriteScalar(offset, flatbuffers::ReadScalar<std::uint32_t>(offset) + 4);
  object = encode_frame(ObjectKind::kSegment, kTestUuid, payload);

  const Encoded changed{.bytes = object, .crc = stated_crc(object)};
  expect_corrupt_row(
      decode_segment(kTestUuid, reference_to(segment, changed, Slot(9)), object).status(),
      "segment references are not aligned");
}

TEST(CodecRows, BorrowsAlignedPayloadsAndCopiesOthers) {
  const FrameContext context{.key = "key", .kind = ObjectKind::kState, .uuid = &kTestUuid};
  const Bytes object = encode_state(kTestUuid, as_bytes("some state")).bytes;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Bytes shifted(shift);
    shifted.insert(shifted.end(), object.begin(), object.end());
    const auto frame = AlignedFrame::open(context, ByteSpan(shifted).subspan(shift));
    ASSERT_TRUE(frame.is_ok());
    EXPECT_EQ(as_text(frame->payload()), "some state");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame->payload().data()) % 8, 0U);
    EXPECT_EQ(frame->payload().data() == shifted.data() + shift + kFrameBytes, shift == 0);
  }
}

}  // namespace
}  // namespace batchloom::store
