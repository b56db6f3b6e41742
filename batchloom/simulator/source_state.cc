// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/source_state.h"

#include "batchloom/base/check.h"

namespace batchloom::simulator {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

Bytes encode_source_state(std::uint64_t next_record, std::size_t padding_bytes) {
  Bytes bytes(kWord + padding_bytes);
  store_le(next_record, bytes.data());
  return bytes;
}

std::uint64_t decode_source_state(ByteSpan state) {
  if (state.empty()) return 0;
  BL_CHECK(state.size() >= kWord, "a simulated state begins with a number");
  return load_le<std::uint64_t>(state.data());
}

}  // namespace batchloom::simulator
