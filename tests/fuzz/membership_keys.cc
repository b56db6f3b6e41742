// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/membership.h"

#include <algorithm>

#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

/// A row whose reference leads to `object`, whatever it is.
MembershipRow row_for(ByteSpan object) {
  MembershipRow row;
  row.producer = "a";
  MembershipRef& ref = row.ref.emplace();
  ref.size_bytes = static_cast<std::uint32_t>(object.size());
  ref.crc = object.size() < kFrameBytes ? 0 : stated_crc(object);
  return row;
}

void attempt(ByteSpan object) {
  const auto keys = decode_membership(kUuid, row_for(object), object);
  if (!keys.is_ok()) return fuzz::check_refusal(keys.status());
  const Bytes again = encode_membership(kUuid, *keys).bytes;
  BL_CHECK(std::equal(again.begin(), again.end(), object.begin(), object.end()),
           "two objects hold the same keys");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = encode_membership(kUuid, as_bytes("keys of a run")).bytes;
  fuzz::attempt_all(ObjectKind::kMembership, kUuid, sample, fuzz::input_bytes(data, size), attempt);
  return 0;
}

}  // namespace batchloom::store
