// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/frame.h"

#include <algorithm>

#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

void attempt(ByteSpan object) {
  const auto frame =
      decode_frame({.key = "key", .kind = ObjectKind::kState, .uuid = &kUuid}, object);
  if (!frame.is_ok()) return fuzz::check_refusal(frame.status());
  const Bytes again = encode_frame(ObjectKind::kState, frame->uuid, frame->payload);
  BL_CHECK(std::equal(again.begin(), again.end(), object.begin(), object.end()),
           "two objects frame one payload");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample =
      encode_frame(ObjectKind::kState, kUuid, as_bytes("the state of a producer"));
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(fuzz::edited(sample, input));
  fuzz::attempt_all(ObjectKind::kState, kUuid, sample, input, attempt);
  return 0;
}

}  // namespace batchloom::store
