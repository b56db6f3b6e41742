// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

void attempt(ByteSpan object) {
  const auto format = decode_format(object);
  if (!format.is_ok()) return fuzz::check_refusal(format.status());
  const auto again = decode_format(encode_format(*format));
  BL_CHECK(again.is_ok() && again->uuid == format->uuid && again->created_by == format->created_by,
           "decodes once only");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = encode_format({.uuid = kUuid, .created_by = "batchloom 0.1.0"});
  fuzz::attempt_all(ObjectKind::kFormat, kUuid, sample, fuzz::input_bytes(data, size), attempt);
  return 0;
}

}  // namespace batchloom::store
