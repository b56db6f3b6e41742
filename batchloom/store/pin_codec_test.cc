// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/pin_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <ostream>

#include "batchloom/store/frame.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

const Pin kPin{.name = {.group = "train", .id = "step-12", .nonce = Nonce(0xbeef)},
               .step = Step(12)};
const StoredCursor kCursor{.cursor = {.group = "train",
                                      .keep_from = Step(12),
                                      .cursor = Step(34),
                                      .counter = 5,
                                      .closed = false},
                           .nonce = Nonce(0xbeef)};

RC_GTEST_PROP(PinCodec, ReadsEveryPinBack, (std::uint64_t nonce, std::uint64_t step)) {
  const Pin pin{.name = {*arbitrary_name(), *arbitrary_name(), Nonce(nonce)}, .step = Step(step)};
  const auto decoded = decode_pin(kTestUuid, pin.name, encode_pin(kTestUuid, pin));
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(*decoded == pin);
}

RC_GTEST_PROP(PinCodec, ReadsEveryLiveCursorBack,
              (std::uint64_t keep_from, std::uint64_t cursor, std::uint64_t counter,
               std::uint64_t nonce, bool closed)) {
  const StoredCursor stored{.cursor = {.group = *arbitrary_name(),
                                       .keep_from = Step(keep_from),
                                       .cursor = Step(cursor),
                                       .counter = counter,
                                       .closed = closed},
                            .nonce = Nonce(nonce)};
  const auto decoded =
      decode_live_cursor(kTestUuid, stored.cursor.group, encode_live_cursor(kTestUuid, stored));
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(*decoded == stored);
}

/// What a decoder says of an object under a key that is not its own.
void expect_another(const Status& status, std::string_view key, std::string_view what) {
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << status.to_string();
  EXPECT_TRUE(status.message().starts_with(std::string(key) + ": at byte ")) << status.message();
  EXPECT_NE(status.message().find(what), std::string_view::npos) << status.message();
}

TEST(PinCodec, AnObjectBelongsToItsKey) {
  const Bytes pin = encode_pin(kTestUuid, kPin);
  const auto refusal = [&](const PinName& name) {
    return decode_pin(kTestUuid, name, pin).status();
  };
  expect_another(refusal({"eval", "step-12", Nonce(0xbeef)}), "pin/eval/step-12-000000000000beef",
                 "its group is not the key's, 'eval'");
  expect_another(refusal({"train", "step-1", Nonce(0xbeef)}), "pin/train/step-1-000000000000beef",
                 "its id is not the key's, 'step-1'");
  expect_another(refusal({"train", "step-12", Nonce(1)}), "pin/train/step-12-0000000000000001",
                 "its nonce 000000000000beef is not the key's");
  expect_another(
      decode_live_cursor(kTestUuid, "eval", encode_live_cursor(kTestUuid, kCursor)).status(),
      "pin/eval/live", "its group is not the key's, 'eval'");
}

/// An encoded object and what decodes it.
struct PinSubject {
  const char* name;
  std::string key;
  ObjectKind kind;
  Bytes object;
  std::function<Status(ByteSpan)> decode;

  friend void PrintTo(const PinSubject& subject, std::ostream* out) { *out << subject.name; }
};

PinSubject pin_subject() {
  return {"Pin", pin_key(kPin.name), ObjectKind::kPin, encode_pin(kTestUuid, kPin),
          [](ByteSpan object) { return decode_pin(kTestUuid, kPin.name, object).status(); }};
}

PinSubject cursor_subject() {
  return {"LiveCursor", live_cursor_key("train"), ObjectKind::kLiveCursor,
          encode_live_cursor(kTestUuid, kCursor),
          [](ByteSpan object) { return decode_live_cursor(kTestUuid, "train", object).status(); }};
}

class PinDamage : public testing::TestWithParam<PinSubject> {
 protected:
  void expect_complaint(const Status& status, ErrorKind kind, const std::string& what) const {
    EXPECT_TRUE(status.is(kind)) << what << ": " << status.to_string();
    EXPECT_TRUE(status.message().starts_with(GetParam().key + ": at byte "))
        << what << ": " << status.message();
  }
  void expect_corruption(ByteSpan object, const std::string& what) const {
    expect_complaint(GetParam().decode(object), ErrorKind::kCorruption, what);
  }
  Bytes object_ = GetParam().object;
  ByteSpan payload() const { return ByteSpan(object_).subspan(kFrameBytes); }
};

TEST_P(PinDamage, NoneIsNoComplaint) {
  EXPECT_TRUE(GetParam().decode(object_).is_ok());
}

TEST_P(PinDamage, CutAnywhereOrTooLong) {
  for (std::size_t size = 0; size < object_.size(); ++size) {
    expect_corruption(ByteSpan(object_).first(size), "cut to " + std::to_string(size));
  }
  object_.push_back(std::byte{0});
  expect_corruption(object_, "one byte more");
}

TEST_P(PinDamage, AnyBitFlipped) {
  for (std::size_t bit = 0; bit < 8 * object_.size(); ++bit) {
    object_[bit / 8] ^= std::byte{1} << (bit % 8);
    const bool version = bit / 16 == 3;  // Bytes 6 and 7: a version from the future.
    expect_complaint(GetParam().decode(object_),
                     version ? ErrorKind::kInvalid : ErrorKind::kCorruption,
                     "bit " + std::to_string(bit));
    object_[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

/// A writer that is not ours: the frame is right, the payload has a flipped bit or a missing end.
TEST_P(PinDamage, InARightFrame) {
  Bytes damaged(payload().begin(), payload().end());
  const auto look = [&](ByteSpan bytes, const std::string& what) {
    const Status status = GetParam().decode(encode_frame(GetParam().kind, kTestUuid, bytes));
    if (!status.is_ok()) expect_complaint(status, ErrorKind::kCorruption, what);
  };
  for (std::size_t bit = 0; bit < 8 * damaged.size(); ++bit) {
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    look(damaged, "bit " + std::to_string(bit));
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t size = 0; size < damaged.size(); ++size) {
    look(ByteSpan(damaged).first(size), "cut to " + std::to_string(size));
  }
}

TEST_P(PinDamage, OfAnotherKindOrStream) {
  for (std::uint16_t kind = 0; kind <= 10; ++kind) {
    if (static_cast<ObjectKind>(kind) == GetParam().kind) continue;
    expect_corruption(encode_frame(static_cast<ObjectKind>(kind), kTestUuid, payload()),
                      "kind " + std::to_string(kind));
  }
  expect_corruption(encode_frame(GetParam().kind, test_uuid(2), payload()), "stream");
}

TEST_P(PinDamage, AFutureVersionAsksForAnUpgrade) {
  store_le<std::uint16_t>(kFormatVersion + 1, &object_[6]);
  const Status status = GetParam().decode(object_);
  expect_complaint(status, ErrorKind::kInvalid, "version");
  EXPECT_NE(status.message().find("upgrade"), std::string_view::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, PinDamage, testing::Values(pin_subject(), cursor_subject()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace batchloom::store
