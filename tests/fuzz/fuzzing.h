// SPDX-License-Identifier: Apache-2.0
// How a decoder of framed objects is fuzzed. libFuzzer's input is tried as
//
//   1. an object as it stands: the frame's own checks;
//   2. the payload of a right frame: its CRC would stop the fuzzer otherwise;
//   3. a list of edits to a good payload, in a right frame: the rules behind the structure.
//
// A decoder must answer with a value or with `corruption` or `invalid`, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batchloom/base/bytes.h"
#include "batchloom/base/check.h"
#include "batchloom/base/status.h"
#include "batchloom/store/frame.h"

namespace batchloom::fuzz {

inline ByteSpan input_bytes(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

/// `sample` after each three bytes of `edits` have set one of its bytes: place (u16), value.
inline Bytes edited(ByteSpan sample, ByteSpan edits) {
  Bytes result(sample.begin(), sample.end());
  for (; edits.size() >= 3; edits = edits.subspan(3)) {
    result[load_le<std::uint16_t>(edits.data()) % result.size()] = edits[2];
  }
  return result;
}

/// Checks that a decoder which refuses an object does so with a kind that its contract names.
inline void check_refusal(const Status& status) {
  BL_CHECK(status.is(ErrorKind::kCorruption) || status.is(ErrorKind::kInvalid), status.to_string());
}

/// Calls `attempt(object)` with each object that can be made of `input`. `sample` is a whole
/// object of `kind` from stream `uuid`.
template <class Attempt>
void attempt_all(store::ObjectKind kind, const store::StreamUuid& uuid, ByteSpan sample,
                 ByteSpan input, const Attempt& attempt) {
  attempt(input);
  attempt(store::encode_frame(kind, uuid, input));
  attempt(store::encode_frame(kind, uuid, edited(sample.subspan(store::kFrameBytes), input)));
}

}  // namespace batchloom::fuzz
