// SPDX-License-Identifier: Apache-2.0
// The index of a batch object, and the two ends that lead to it.
#include "batchloom/store/batch_index.h"

#include "batchloom/base/hash.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/store/batch_index_codec.h"
#include "batchloom/store/run_table.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

constexpr std::uint64_t kRunsEnd = 768;

BatchContext context_of(std::uint64_t index_bytes) {
  return {.key = "key",
          .identity = {.stream = StreamUuid{}, .producer = "p", .term = Term(3), .seq = Seq(7)},
          .steps = 1,
          .ranks = 2,
          .size_bytes = kRunsEnd + index_bytes + kBatchFooterBytes};
}

/// Two ranks; a sample on both, and one on rank 1.
model::StepPlan good_plan() {
  model::StepPlan plan;
  plan.topology = model::Topology::create({{model::Axis::kDp, 2}}).value();
  plan.samples = {{{}, 4, 3, 0}, {{model::SourceId(1), {}, {}, {}}, 2, 2, 0}};
  plan.pieces = {
      {model::SampleIndex(0), 0, 2}, {model::SampleIndex(0), 2, 4}, {model::SampleIndex(1), 0, 2}};
  plan.micro_batches = {
      {model::TaskIndex(0), {0, 1}}, {model::TaskIndex(0), {1, 2}}, {model::TaskIndex(1), {2, 3}}};
  plan.ranks = {{0, 1}, {1, 3}};
  plan.tasks = {{{0, 2}, model::OffloadRatio(0), 1}, {{2, 3}, model::OffloadRatio(0), 1}};
  plan.members = {model::HdpRank(0), model::HdpRank(1), model::HdpRank(1)};
  plan.events = {{model::TaskIndex(0), model::Phase::kForward},
                 {model::TaskIndex(0), model::Phase::kBackward},
                 {model::TaskIndex(1), model::Phase::kForward},
                 {model::TaskIndex(1), model::Phase::kBackward}};
  plan.global_valid_labels = 5;
  plan.digest = model::plan_digest(plan);
  return plan;
}

Bytes sample_index() {
  const model::StepPlan plan = good_plan();
  std::vector<model::SampleMeta> origins(2);
  origins[1].image_patches = {5, 6};
  const BatchOrigin origin{.sources = {{"web", 1}, {"code", 2}},
                           .planner = "planner",
                           .planner_digest = 3,
                           .capacity_tokens = 4,
                           .max_sample_tokens = 8,
                           .min_share_tokens = 2,
                           .offload = true,
                           .cost_model = "h200",
                           .cost_table = Bytes(3)};
  BatchIndexRows rows{.identity = context_of(0).identity,
                      .token_width = TokenWidth::k16,
                      .origin = &origin,
                      .steps = {}};
  IndexStepRows& step = rows.steps.emplace_back();
  step.plan = &plan;
  step.origins = origins;
  // Columns of 64 bytes each, and as much for the header of each run.
  step.micro_batches = {192, 384, 512};
  step.pieces.resize(3, {.all_labels = true});
  step.pieces[2] = {.label_intervals = 1, .tensors = 1};
  step.tensors = {{.token = 1, .info = {"pixels", TensorType::kU8, {2, 2}}}};
  return encode_batch_index(rows);
}

void attempt(ByteSpan bytes) {
  const BatchContext object = context_of(bytes.size());
  const auto index = decode_batch_index(object, kRunsEnd, bytes);
  if (!index.is_ok()) return fuzz::check_refusal(index.status());
  for (const std::vector<IndexedPiece>& pieces : index->pieces) {
    for (const IndexedPiece& piece : pieces) {
      piece.slices.for_each([](const Slice& slice) {
        BL_CHECK(slice.size_bytes <= kRunsEnd && slice.end() <= kRunsEnd, "beyond the runs");
      });
    }
  }
}

/// Header, table and footer, as they stand and with a CRC that fits.
void attempt_ends(ByteSpan input) {
  const BatchContext object = context_of(100);
  const Bytes header = encode_batch_header(object, {});
  const Bytes footer = encode_batch_footer(object.identity.stream, {kRunsEnd, 100});
  const auto resealed = [&](ByteSpan block) {
    Bytes edited = fuzz::edited(block.first(60), input);
    edited.resize(64);
    store_le(crc32c(ByteSpan(edited).first(60)), &edited[60]);
    return edited;
  };
  for (const Bytes& block :
       {resealed(header), resealed(footer), Bytes(input.begin(), input.end())}) {
    const auto decoded = decode_batch_header(object, block);
    if (!decoded.is_ok()) fuzz::check_refusal(decoded.status());
    const auto index = decode_batch_footer(object, block);
    if (!index.is_ok()) fuzz::check_refusal(index.status());
    const auto front = decode_batch_front(object, block);
    if (!front.is_ok()) fuzz::check_refusal(front.status());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = sample_index();
  BL_CHECK(decode_batch_index(context_of(sample.size()), kRunsEnd, sample).is_ok(),
           "the sample is no index");
  const ByteSpan input = fuzz::input_bytes(data, size);
  fuzz::attempt_all(ObjectKind::kBatchIndex, StreamUuid{}, sample, input, attempt);
  attempt_ends(input);
  return 0;
}

}  // namespace batchloom::store
