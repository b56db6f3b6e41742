// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/pin_codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

Pin sample_pin() {
  return {.name = {.group = "train", .id = "step-12", .nonce = Nonce(0x0a1b2c3d4e5f6071)},
          .step = Step(12)};
}

StoredCursor sample_cursor() {
  return {.cursor = {.group = "train",
                     .keep_from = Step(12),
                     .cursor = Step(34),
                     .counter = 5,
                     .closed = false},
          .nonce = Nonce(7)};
}

void attempt_pin(ByteSpan object) {
  const auto pin = decode_pin(kUuid, sample_pin().name, object);
  if (!pin.is_ok()) return fuzz::check_refusal(pin.status());
  const auto again = decode_pin(kUuid, pin->name, encode_pin(kUuid, *pin));
  BL_CHECK(again.is_ok() && *again == *pin, "decodes once only");
}

void attempt_cursor(ByteSpan object) {
  const auto stored = decode_live_cursor(kUuid, sample_cursor().cursor.group, object);
  if (!stored.is_ok()) return fuzz::check_refusal(stored.status());
  const auto again =
      decode_live_cursor(kUuid, stored->cursor.group, encode_live_cursor(kUuid, *stored));
  BL_CHECK(again.is_ok() && *again == *stored, "decodes once only");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes pin = encode_pin(kUuid, sample_pin());
  static const Bytes cursor = encode_live_cursor(kUuid, sample_cursor());
  const ByteSpan input = fuzz::input_bytes(data, size);
  fuzz::attempt_all(ObjectKind::kPin, kUuid, pin, input, attempt_pin);
  fuzz::attempt_all(ObjectKind::kLiveCursor, kUuid, cursor, input, attempt_cursor);
  return 0;
}

}  // namespace batchloom::store
