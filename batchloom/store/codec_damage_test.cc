// SPDX-License-Identifier: Apache-2.0
// Every kind of damage to every kind of object: what its decoder says about it.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

/// An encoded object. `decode` also checks that what decodes survives another round trip.
struct Subject {
  const char* name;
  std::string key;
  ObjectKind kind;
  Bytes object;
  std::function<Status(ByteSpan)> decode;

  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
};

Status round_trip_broken() {
  return Status::internal("decodes, but not after it was encoded again");
}

Subject head_subject() {
  return {"Head", manifest_key(Slot(9)), ObjectKind::kHead,
          encode_head(kTestUuid, small_head()).bytes, [](ByteSpan object) {
            const auto stored = decode_head(kTestUuid, Slot(9), object);
            if (!stored.is_ok()) return stored.status();
            const auto again =
                decode_head(kTestUuid, Slot(9), encode_head(kTestUuid, stored->head).bytes);
            return again.is_ok() && again->head == stored->head ? Status::ok()
                                                                : round_trip_broken();
          }};
}

Subject segment_subject() {
  const Encoded encoded = encode_segment(kTestUuid, small_segment());
  const SegmentRef original = reference_to(small_segment(), encoded, Slot(9));
  return {"Segment", segment_key(original.name()), ObjectKind::kSegment, encoded.bytes,
          [original](ByteSpan object) {
            SegmentRef ref = original;  // A reference that fits, so that the content is looked at.
            ref.size_bytes = static_cast<std::uint32_t>(object.size());
            if (object.size() >= kFrameBytes) ref.crc = stated_crc(object);
            const auto segment = decode_segment(kTestUuid, ref, object);
            if (!segment.is_ok()) return segment.status();
            const Encoded recoded = encode_segment(kTestUuid, *segment);
            const auto again =
                decode_segment(kTestUuid, reference_to(*segment, recoded, Slot(9)), recoded.bytes);
            return again.is_ok() && *again == *segment ? Status::ok() : round_trip_broken();
          }};
}

Subject state_subject() {
  const Encoded encoded = encode_state(kTestUuid, as_bytes("a state"));
  ProducerRow original = small_head().producers[1];
  return {"State", data_key(original.state_object()), ObjectKind::kState, encoded.bytes,
          [original](ByteSpan object) {
            ProducerRow row = original;
            row.state.ref->size_bytes = static_cast<std::uint32_t>(object.size());
            if (object.size() >= kFrameBytes) row.state.ref->crc = stated_crc(object);
            return decode_state(kTestUuid, row, object).status();
          }};
}

Subject membership_subject() {
  const Encoded encoded = encode_membership(kTestUuid, as_bytes("some keys"));
  const MembershipRow original = small_head().memberships[1];
  return {"Membership", data_key(original.object()), ObjectKind::kMembership, encoded.bytes,
          [original](ByteSpan object) {
            MembershipRow row = original;
            row.ref->size_bytes = static_cast<std::uint32_t>(object.size());
            if (object.size() >= kFrameBytes) row.ref->crc = stated_crc(object);
            return decode_membership(kTestUuid, row, object).status();
          }};
}

Subject floor_subject() {
  return {"Floor", std::string(kFloorKey), ObjectKind::kFloor, encode_floor(kTestUuid, Slot(5)),
          [](ByteSpan object) { return decode_floor(kTestUuid, object).status(); }};
}

Subject format_subject() {
  return {"Format", std::string(kFormatKey), ObjectKind::kFormat,
          encode_format({.uuid = kTestUuid, .created_by = "batchloom 0.1.0"}),
          [](ByteSpan object) { return decode_format(object).status(); }};
}

class CodecDamage : public testing::TestWithParam<Subject> {
 protected:
  void expect_complaint(const Status& status, ErrorKind kind, const std::string& what) const {
    EXPECT_TRUE(status.is(kind)) << what << ": " << status.to_string();
    EXPECT_EQ(status.message().find(GetParam().key + ": at byte "), 0U)
        << what << ": " << status.message();
  }
  ByteSpan payload() const { return ByteSpan(GetParam().object).subspan(kFrameBytes); }
};

TEST_P(CodecDamage, NoneIsNoComplaint) {
  const Status status = GetParam().decode(GetParam().object);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_P(CodecDamage, TruncatedAnywhere) {
  for (std::size_t size = 0; size < GetParam().object.size(); ++size) {
    expect_complaint(GetParam().decode(ByteSpan(GetParam().object).first(size)),
                     ErrorKind::kCorruption, "cut to " + std::to_string(size));
  }
}

TEST_P(CodecDamage, OneByteTooMany) {
  Bytes object = GetParam().object;
  object.push_back(std::byte{0});
  expect_complaint(GetParam().decode(object), ErrorKind::kCorruption, "one byte more");
}

TEST_P(CodecDamage, AnyBitFlipped) {
  Bytes object = GetParam().object;
  for (std::size_t bit = 0; bit < 8 * object.size(); ++bit) {
    object[bit / 8] ^= std::byte{1} << (bit % 8);
    const bool version = bit / 16 == 3;  // Bytes 6 and 7: a version from the future.
    expect_complaint(GetParam().decode(object),
                     version ? ErrorKind::kInvalid : ErrorKind::kCorruption,
                     "bit " + std::to_string(bit));
    object[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

/// A writer that is not ours: the frame is right, the payload has a flipped bit or a missing end.
TEST_P(CodecDamage, DamagedPayloadInARightFrame) {
  Bytes damaged(payload().begin(), payload().end());
  for (std::size_t bit = 0; bit < 8 * damaged.size(); ++bit) {
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const Status status = GetParam().decode(encode_frame(GetParam().kind, kTestUuid, damaged));
    if (!status.is_ok()) expect_complaint(status, ErrorKind::kCorruption, std::to_string(bit));
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t size = 0; size < damaged.size(); ++size) {
    const ByteSpan cut = ByteSpan(damaged).first(size);
    const Status status = GetParam().decode(encode_frame(GetParam().kind, kTestUuid, cut));
    if (!status.is_ok()) expect_complaint(status, ErrorKind::kCorruption, std::to_string(size));
  }
}

TEST_P(CodecDamage, ForeignKind) {
  for (std::uint16_t kind = 0; kind <= 11; ++kind) {
    if (static_cast<ObjectKind>(kind) == GetParam().kind) continue;
    const Bytes object = encode_frame(static_cast<ObjectKind>(kind), kTestUuid, payload());
    expect_complaint(GetParam().decode(object), ErrorKind::kCorruption, std::to_string(kind));
  }
}

TEST_P(CodecDamage, ForeignStream) {
  if (GetParam().kind == ObjectKind::kFormat) return;  // It says which stream this is.
  const Status status = GetParam().decode(encode_frame(GetParam().kind, test_uuid(2), payload()));
  expect_complaint(status, ErrorKind::kCorruption, "stream");
  EXPECT_NE(status.message().find("belongs to stream " + test_uuid(2).to_string()),
            std::string::npos)
      << status.message();
}

TEST_P(CodecDamage, FutureVersion) {
  Bytes object = GetParam().object;
  store_le<std::uint16_t>(kFormatVersion + 1, &object[6]);
  const Status status = GetParam().decode(object);
  expect_complaint(status, ErrorKind::kInvalid, "version");
  EXPECT_NE(status.message().find("upgrade"), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, CodecDamage,
                         testing::Values(head_subject(), segment_subject(), state_subject(),
                                         membership_subject(), floor_subject(), format_subject()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace batchloom::store
