// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "batchloom/base/check.h"
#include "batchloom/simulator/store_history.h"

namespace batchloom::simulator {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

Bytes encode_body(const BatchBody& body) {
  const ByteSpan name = as_bytes(body.producer);
  Bytes bytes(2 * kWord + name.size());
  store_le(body.from, bytes.data());
  store_le(body.to, bytes.data() + kWord);
  std::ranges::copy(name, bytes.begin() + 2 * kWord);
  return bytes;
}

std::optional<BatchBody> decode_body(ByteSpan bytes) {
  if (bytes.size() < 2 * kWord) return std::nullopt;
  return BatchBody{.producer = std::string(as_text(bytes.subspan(2 * kWord))),
                   .from = load_le<std::uint64_t>(bytes.data()),
                   .to = load_le<std::uint64_t>(bytes.data() + kWord)};
}

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
