// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

/// A row whose reference leads to `object`, whatever it is.
ProducerRow row_for(ByteSpan object) {
  ProducerRow row;
  row.producer = "a";
  StateRef& ref = row.state.ref.emplace();
  ref.size_bytes = static_cast<std::uint32_t>(object.size());
  ref.crc = object.size() < kFrameBytes ? 0 : stated_crc(object);
  return row;
}

void attempt(ByteSpan object) {
  const auto state = decode_state(kUuid, row_for(object), object);
  if (!state.is_ok()) return fuzz::check_refusal(state.status());
  const Bytes again = encode_state(kUuid, *state).bytes;
  BL_CHECK(std::equal(again.begin(), again.end(), object.begin(), object.end()),
           "two objects hold one state");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = encode_state(kUuid, as_bytes("cursors")).bytes;
  fuzz::attempt_all(ObjectKind::kState, kUuid, sample, fuzz::input_bytes(data, size), attempt);
  return 0;
}

}  // namespace batchloom::store
