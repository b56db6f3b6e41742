// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a stored membership, and as its lines below a right mark, version
// and CRC. What can be decoded is stored again as the same bytes.
#include <algorithm>

#include "batchloom/control/membership.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::control {
namespace {

void attempt(ByteSpan bytes) {
  const auto read = decode_membership(bytes);
  if (!read.is_ok()) return fuzz::check_refusal(read.status());
  const Bytes again = encode_membership(*read).value();
  BL_CHECK(std::ranges::equal(again, bytes), "two memberships have the same lines");
  BL_CHECK(differences(*read, *read).empty(), "a membership differs from itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kCrcBytes = 4;
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input);
  Bytes framed = encode_membership({}).value();
  framed.resize(framed.size() - kCrcBytes);
  framed.insert(framed.end(), input.begin(), input.end());
  const std::uint32_t crc = crc32c(framed);
  framed.resize(framed.size() + kCrcBytes);
  store_le(crc, framed.data() + framed.size() - kCrcBytes);
  attempt(framed);
  return 0;
}

}  // namespace batchloom::control
