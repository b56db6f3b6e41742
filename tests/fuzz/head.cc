// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head.h"

#include "batchloom/store/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

constexpr Slot kSlot(9);
const StreamUuid kUuid{};

Entry sample_entry(Step first_step, const std::string& producer) {
  return {.first_step = first_step,
          .steps = 3,
          .producer = producer,
          .term = Term(3),
          .seq = Seq(1),
          .nonce = Nonce(2),
          .size_bytes = 1000,
          .ranks = 2,
          .run_table = Bytes(104)};
}

Bytes sample_head() {
  Head head;
  head.slot = kSlot;
  head.previous_crc = 5;
  head.writer = {.producer = "a", .term = Term(3)};
  head.first_step = Step(7);
  head.next_step = Step(16);
  head.trim_intent = TrimIntent{.step = Step(20), .slot = Slot(8)};
  head.ended = true;
  head.topologies = {{Step(2), 2, "dp=2"}, {Step(13), 2, "pp=3 dp=1 cp=2 tp=4"}};
  head.memberships = {{.from_step = Step(0),
                       .digest = {.high = 1, .low = 2},
                       .producer = "c",
                       .term = Term(2),
                       .inline_keys = Bytes(9),
                       .ref = {}},
                      {.from_step = Step(14),
                       .digest = {.high = 3, .low = 4},
                       .producer = "b",
                       .term = Term(4),
                       .inline_keys = {},
                       .ref = MembershipRef{Seq(1), Nonce(8), 600, 7}}};
  head.skipped = {Step(8), Step(13)};
  head.producers = {
      {.producer = "a",
       .term = Term(3),
       .next_seq = Seq(4),
       .last_slot = Slot(9),
       .finished = true,
       .state = {.inline_bytes = Bytes(5), .ref = {}}},
      {.producer = "b",
       .term = Term(4),
       .next_seq = Seq(2),
       .last_slot = Slot(8),
       .finished = false,
       .state = {.inline_bytes = {}, .ref = StateRef{Term(4), Seq(1), Nonce(7), 500, 6}}}};
  head.segments = {{{Slot(7), 0, Nonce(1), Step(6), 400, 3}, {Slot(8), 0, Nonce(2), Step(8), 1, 2}},
                   {{Slot(6), 1, Nonce(3), Step(2), 39, 30}}};
  head.tail = {sample_entry(Step(10), "a"), sample_entry(Step(13), "c")};
  return encode_head(kUuid, head).bytes;
}

void attempt(ByteSpan object) {
  const auto stored = decode_head(kUuid, kSlot, object);
  if (!stored.is_ok()) return fuzz::check_refusal(stored.status());
  const auto again = decode_head(kUuid, kSlot, encode_head(kUuid, stored->head).bytes);
  BL_CHECK(again.is_ok() && again->head == stored->head, "decodes once only");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = sample_head();
  fuzz::attempt_all(ObjectKind::kHead, kUuid, sample, fuzz::input_bytes(data, size), attempt);
  return 0;
}

}  // namespace batchloom::store
