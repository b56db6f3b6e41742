// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const StreamUuid kUuid{};

Segment sample_segment(std::uint32_t level) {
  Segment segment{
      .level = level, .first_step = Step(10), .end_step = Step(16), .entries = {}, .children = {}};
  if (level == 0) {
    const Entry entry{.first_step = Step(10),
                      .steps = 6,
                      .producer = "a",
                      .term = Term(3),
                      .seq = Seq(1),
                      .nonce = Nonce(2),
                      .size_bytes = 1000,
                      .ranks = 1,
                      .run_table = Bytes(100)};
    segment.entries = {entry};
  } else {
    segment.children = {{Slot(7), 0, Nonce(1), Step(10), 400, 3},
                        {Slot(8), 0, Nonce(2), Step(12), 1, 2}};
  }
  return segment;
}

/// A reference of `level` that leads to `object`, whatever it is.
SegmentRef reference_to(std::uint32_t level, ByteSpan object) {
  return {.slot = Slot(9),
          .level = level,
          .nonce = Nonce(1),
          .first_step = Step(10),
          .size_bytes = static_cast<std::uint32_t>(object.size()),
          .crc = object.size() < kFrameBytes ? 0 : stated_crc(object)};
}

void attempt(std::uint32_t level, ByteSpan object) {
  const auto segment = decode_segment(kUuid, reference_to(level, object), object);
  if (!segment.is_ok()) return fuzz::check_refusal(segment.status());
  const Bytes recoded = encode_segment(kUuid, *segment).bytes;
  const auto again = decode_segment(kUuid, reference_to(level, recoded), recoded);
  BL_CHECK(again.is_ok() && *again == *segment, "decodes once only");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes samples[] = {encode_segment(kUuid, sample_segment(0)).bytes,
                                  encode_segment(kUuid, sample_segment(1)).bytes};
  for (const std::uint32_t level : {0U, 1U}) {
    fuzz::attempt_all(ObjectKind::kSegment, kUuid, samples[level], fuzz::input_bytes(data, size),
                      [level](ByteSpan object) { attempt(level, object); });
  }
  return 0;
}

}  // namespace batchloom::store
