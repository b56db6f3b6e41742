// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

ProducerRow row_for(const Encoded& encoded) {
  ProducerRow row = small_head().producers[1];
  row.state.ref->size_bytes = static_cast<std::uint32_t>(encoded.bytes.size());
  row.state.ref->crc = encoded.crc;
  return row;
}

RC_GTEST_PROP(StateCodec, ReadsEveryStateBack, (std::string state)) {
  const Encoded encoded = encode_state(kTestUuid, as_bytes(state));
  const auto decoded = decode_state(kTestUuid, row_for(encoded), encoded.bytes);
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(as_text(*decoded) == state);
}

TEST(StateCodec, RefusesAnotherObjectThanTheOneMeant) {
  const Encoded encoded = encode_state(kTestUuid, as_bytes("state"));
  const Encoded other = encode_state(kTestUuid, as_bytes("other"));
  const Encoded longer = encode_state(kTestUuid, as_bytes("longer"));
  for (const Encoded& wrong : {other, longer}) {
    const Status status = decode_state(kTestUuid, row_for(encoded), wrong.bytes).status();
    EXPECT_TRUE(status.is(ErrorKind::kCorruption));
    EXPECT_EQ(status.message().find(
                  "d/00/beta.000000000004.000000000001.000000000000004d.state: at byte 0: another"),
              0U)
        << status.message();
  }
}

MembershipRow membership_for(const Encoded& encoded) {
  MembershipRow row = small_head().memberships[1];
  row.ref->size_bytes = static_cast<std::uint32_t>(encoded.bytes.size());
  row.ref->crc = encoded.crc;
  return row;
}

RC_GTEST_PROP(MembershipCodec, ReadsAllKeysBack, (std::string keys)) {
  const Encoded encoded = encode_membership(kTestUuid, as_bytes(keys));
  const auto decoded = decode_membership(kTestUuid, membership_for(encoded), encoded.bytes);
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(as_text(*decoded) == keys);
}

TEST(MembershipCodec, RefusesAnotherObjectThanTheOneMeant) {
  const Encoded encoded = encode_membership(kTestUuid, as_bytes("keys"));
  const Encoded other = encode_membership(kTestUuid, as_bytes("else"));
  const Encoded longer = encode_membership(kTestUuid, as_bytes("longer"));
  for (const Encoded& wrong : {other, longer}) {
    const Status status =
        decode_membership(kTestUuid, membership_for(encoded), wrong.bytes).status();
    EXPECT_TRUE(status.is(ErrorKind::kCorruption));
    EXPECT_EQ(status.message().find("d/00/beta.000000000004.000000000001.000000000000004e."
                                    "membership: at byte 0: another"),
              0U)
        << status.message();
  }
}

RC_GTEST_PROP(FloorCodec, ReadsEveryFloorBack, (std::uint64_t floor)) {
  const auto decoded = decode_floor(kTestUuid, encode_floor(kTestUuid, Slot(floor)));
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(*decoded == Slot(floor));
}

RC_GTEST_PROP(FormatCodec, ReadsEveryFormatBack, (std::uint64_t number, std::string created_by)) {
  const auto decoded =
      decode_format(encode_format({.uuid = test_uuid(number), .created_by = created_by}));
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(decoded->uuid == test_uuid(number));
  RC_ASSERT(decoded->created_by == created_by);
}

}  // namespace
}  // namespace batchloom::store
