// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

void attempt(ByteSpan object) {
  const auto floor = decode_floor(kUuid, object);
  if (!floor.is_ok()) return fuzz::check_refusal(floor.status());
  const auto again = decode_floor(kUuid, encode_floor(kUuid, *floor));
  BL_CHECK(again.is_ok() && *again == *floor, "decodes once only");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = encode_floor(kUuid, Slot(5));
  fuzz::attempt_all(ObjectKind::kFloor, kUuid, sample, fuzz::input_bytes(data, size), attempt);
  return 0;
}

}  // namespace batchloom::store
