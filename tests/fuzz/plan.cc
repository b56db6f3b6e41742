// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as the bytes of a plan, and as edits to the fields of a good plan,
// whose digest is then made to fit. Whatever it is, decoding ends with a plan that can be checked,
// or with `corruption`.
#include <cstddef>
#include <cstdint>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_codec.h"
#include "batchloom/model/plan_digest.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::model {
namespace {

void attempt(ByteSpan bytes) {
  const Result<StepPlan> plan = decode_plan(bytes);
  if (!plan.is_ok()) {
    BL_CHECK(plan.is(ErrorKind::kCorruption) || plan.is(ErrorKind::kInvalid),
             plan.status().to_string());
    return;
  }
  const PlanCheckOptions options = {.capacity = Capacity{.tokens = 3, .layers = 4},
                                    .equal_micro_batch_counts = true};
  const Status checked = check_plan(*plan, options);
  BL_CHECK(checked.is_ok() || checked.is(ErrorKind::kInvalid), checked.to_string());
  BL_CHECK(decode_plan(encode_plan(*plan)).value() == *plan, "a plan changed when stored again");
}

/// Two ranks; a sample on both, and one on rank 1.
StepPlan good_plan() {
  StepPlan plan;
  plan.topology = Topology::create({{Axis::kDp, 2}}, {{"island", 2, 1, 1}}).value();
  plan.strategy = "hdp";
  plan.samples = {{{}, 4, 3, 0}, {{SourceId(1), {}, {}, {}}, 2, 2, 0}};
  plan.pieces = {{SampleIndex(0), 0, 2}, {SampleIndex(0), 2, 4}, {SampleIndex(1), 0, 2}};
  plan.micro_batches = {{TaskIndex(0), {0, 1}}, {TaskIndex(0), {1, 2}}, {TaskIndex(1), {2, 3}}};
  plan.ranks = {{0, 1}, {1, 3}};
  plan.tasks = {{{0, 2}, OffloadRatio(0), 1}, {{2, 3}, OffloadRatio(0), 1}};
  plan.members = {HdpRank(0), HdpRank(1), HdpRank(1)};
  plan.events = {{TaskIndex(0), Phase::kForward},
                 {TaskIndex(0), Phase::kBackward},
                 {TaskIndex(1), Phase::kForward},
                 {TaskIndex(1), Phase::kBackward}};
  plan.global_valid_labels = 5;
  return plan;
}

void edit(StepPlan& plan, std::uint8_t field, std::uint8_t place, std::uint8_t byte) {
  const auto pick = [place](auto& vector) -> auto& { return vector[place % vector.size()]; };
  // The last values stand for the largest, where sums and products overflow.
  const std::uint32_t value = byte < 0xf0 ? byte : 0xffffff00u | byte;
  switch (field % 16) {
    case 0: pick(plan.samples).tokens = value; break;
    case 1: pick(plan.samples).valid_labels = value; break;
    case 2: pick(plan.samples).id.source = SourceId(value); break;
    case 3: pick(plan.pieces).sample = SampleIndex(value); break;
    case 4: pick(plan.pieces).lo = value; break;
    case 5: pick(plan.pieces).hi = value; break;
    case 6: pick(plan.micro_batches).task = TaskIndex(value); break;
    case 7: pick(plan.micro_batches).pieces.begin = value; break;
    case 8: pick(plan.micro_batches).pieces.end = value; break;
    case 9: pick(plan.ranks).begin = value; break;
    case 10: pick(plan.ranks).end = value; break;
    case 11: pick(plan.tasks).members.begin = value; break;
    case 12: pick(plan.tasks).members.end = value; break;
    case 13: pick(plan.members) = HdpRank(value); break;
    case 14: pick(plan.events).task = TaskIndex(value); break;
    default: pick(plan.events).phase = static_cast<Phase>(byte); break;
  }
}

void attempt_edits(StepPlan plan, ByteSpan edits) {
  for (; edits.size() >= 3; edits = edits.subspan(3)) {
    edit(plan, load_le<std::uint8_t>(&edits[0]), load_le<std::uint8_t>(&edits[1]),
         load_le<std::uint8_t>(&edits[2]));
  }
  plan.digest = plan_digest(plan);
  BL_CHECK(decode_plan(encode_plan(plan)).is_ok() == check_plan_structure(plan).is_ok(),
           "decoding and the structure check disagree");
  attempt(encode_plan(plan));
}

}  // namespace
}  // namespace batchloom::model

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace model = batchloom::model;
  static const model::StepPlan plan = model::good_plan();
  static const batchloom::Bytes stored = model::encode_plan(plan);
  const batchloom::ByteSpan input = batchloom::fuzz::input_bytes(data, size);
  model::attempt(input);
  model::attempt(batchloom::fuzz::edited(stored, input));
  model::attempt_edits(plan, input);
  return 0;
}
