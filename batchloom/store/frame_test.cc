// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/base/hash.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

const FrameContext kStateContext{.key = "some/key", .kind = ObjectKind::kState, .uuid = &kTestUuid};

std::string message_of(ByteSpan object) {
  return std::string(decode_frame(kStateContext, object).status().message());
}

TEST(Frame, LaysBytesOutAsDocumented) {
  const Bytes object = encode_frame(ObjectKind::kState, kTestUuid, as_bytes("payload"));
  ASSERT_EQ(object.size(), 47U);
  EXPECT_EQ(as_text(ByteSpan(object).first(4)), "BLSO");
  EXPECT_EQ(load_le<std::uint16_t>(&object[4]), 4);
  EXPECT_EQ(load_le<std::uint16_t>(&object[6]), kFormatVersion);
  EXPECT_TRUE(std::equal(kTestUuid.bytes.begin(), kTestUuid.bytes.end(), object.begin() + 8));
  EXPECT_EQ(load_le<std::uint64_t>(&object[24]), 7U);
  EXPECT_EQ(load_le<std::uint32_t>(&object[36]), 0U);
  EXPECT_EQ(as_text(ByteSpan(object).subspan(40)), "payload");

  Bytes covered(object.begin(), object.begin() + 32);
  covered.insert(covered.end(), object.begin() + 40, object.end());
  EXPECT_EQ(load_le<std::uint32_t>(&object[32]), crc32c(covered));
  EXPECT_EQ(stated_crc(object), crc32c(covered));
}

TEST(Frame, MessagesNameKeyOffsetAndReason) {
  Bytes object = encode_frame(ObjectKind::kState, kTestUuid, as_bytes("payload"));
  EXPECT_EQ(message_of({}), "some/key: at byte 0: the object is empty");
  EXPECT_EQ(message_of(ByteSpan(object).first(39)),
            "some/key: at byte 39: truncated: ends inside the frame of 40 bytes");
  EXPECT_EQ(message_of(ByteSpan(object).first(46)),
            "some/key: at byte 24: truncated: states a payload of 7 bytes, has 6");
  object.push_back(std::byte{0});
  EXPECT_EQ(message_of(object),
            "some/key: at byte 24: too long: states a payload of 7 bytes, has 8");

  EXPECT_EQ(message_of(encode_frame(ObjectKind::kState, test_uuid(2), {})),
            "some/key: at byte 8: belongs to stream " + test_uuid(2).to_string() + ", expected " +
                kTestUuid.to_string());
  EXPECT_EQ(message_of(encode_frame(ObjectKind::kHead, kTestUuid, {})),
            "some/key: at byte 4: holds a head (kind 2), expected a state");
}

TEST(Frame, SaysWhatIsNoObjectOfAStore) {
  Bytes object = encode_frame(ObjectKind::kState, kTestUuid, as_bytes("payload"));
  object[3] = std::byte{'P'};
  EXPECT_EQ(message_of(object),
            "some/key: at byte 0: not an object of a batch store (the magic is missing)");
}

TEST(Frame, ANewerVersionAsksForAnUpgrade) {
  Bytes object = encode_frame(ObjectKind::kState, kTestUuid, as_bytes("payload"));
  store_le<std::uint16_t>(kFormatVersion + 1, &object[6]);
  const Status status = decode_frame(kStateContext, object).status();
  EXPECT_TRUE(status.is(ErrorKind::kInvalid));
  EXPECT_NE(status.message().find("some/key: at byte 6: "), std::string::npos);
  EXPECT_NE(status.message().find("upgrade"), std::string::npos);
}

TEST(Frame, AnyStreamWillDoWhereNoneIsExpected) {
  const Bytes object = encode_frame(ObjectKind::kFormat, kTestUuid, {});
  const auto frame = decode_frame({.key = "FORMAT", .kind = ObjectKind::kFormat}, object);
  ASSERT_TRUE(frame.is_ok());
  EXPECT_EQ(frame->uuid, kTestUuid);
}

TEST(Frame, UuidsAreSpelledInLowerCase) {
  StreamUuid uuid;
  uuid.bytes[0] = std::byte{0xa0};
  uuid.bytes[15] = std::byte{0x0f};
  EXPECT_EQ(uuid.to_string(), "a000000000000000000000000000000f");
}

RC_GTEST_PROP(Frame, EveryPayloadIsReadBack, (std::string payload)) {
  const Bytes object = encode_frame(ObjectKind::kState, kTestUuid, as_bytes(payload));
  const auto frame = decode_frame(kStateContext, object);
  RC_ASSERT(frame.is_ok());
  RC_ASSERT(as_text(frame->payload) == payload);
  RC_ASSERT(frame->uuid == kTestUuid);
  RC_ASSERT(frame->crc == stated_crc(object));
}

}  // namespace
}  // namespace batchloom::store
