// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/random.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/plan_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/piece_content.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

std::uint32_t below32(Random& random, std::uint64_t n) {
  return static_cast<std::uint32_t>(random.below(n));
}

Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

/// Ascending intervals, apart, of the labels for which `counts` is true.
std::vector<LabelInterval> intervals_of(const std::vector<bool>& counts) {
  std::vector<LabelInterval> intervals;
  for (std::uint32_t label = 0; label < counts.size(); ++label) {
    if (!counts[label]) continue;
    if (intervals.empty() || intervals.back().end < label) intervals.push_back({label, label});
    ++intervals.back().end;
  }
  return intervals;
}

/// `counted` of `existing` labels.
std::vector<LabelInterval> random_labels(Random& random, std::uint32_t existing,
                                         std::uint32_t counted) {
  std::vector<bool> counts(existing, false);
  for (std::uint32_t left = counted; left > 0;) {
    // In stretches, as turns of a conversation are.
    std::uint32_t label = below32(random, existing);
    for (std::uint64_t length = 1 + random.below(6); length > 0 && left > 0; --length) {
      if (!counts[label]) --left;
      counts[label] = true;
      label = (label + 1) % existing;
    }
  }
  return intervals_of(counts);
}

TensorInfo random_tensor(Random& random) {
  TensorInfo info{.name = random.chance(500) ? "pixels" : "audio",
                  .type = static_cast<TensorType>(random.below(6)),
                  .shape = {}};
  for (std::uint64_t dimensions = random.below(4); dimensions > 0; --dimensions) {
    info.shape.push_back(1 + below32(random, 5));
  }
  return info;
}

void add_tensors(Random& random, std::uint32_t tokens, SampleContent& content,
                 std::vector<Bytes>& owned) {
  std::vector<std::uint32_t> places(random.chance(300) ? 1 + random.below(3) : 0);
  for (std::uint32_t& place : places) place = below32(random, tokens);
  std::ranges::sort(places);
  for (const std::uint32_t place : places) {
    const TensorInfo info = random_tensor(random);
    const Bytes& bytes = owned.emplace_back(random_bytes(random, tensor_bytes(info).value()));
    content.tensors.push_back({.token = place, .info = info, .bytes = bytes});
  }
}

SampleContent random_content(Random& random, const model::PlanSample& sample,
                             std::vector<Bytes>& tensors) {
  SampleContent content;
  if (sample.valid_labels == sample.tokens || random.chance(700)) {
    content.next_token = below32(random, 1 + UINT16_MAX);
  }
  const std::uint32_t existing = existing_labels(sample.tokens, content.next_token.has_value());
  if (sample.valid_labels < existing || random.chance(200)) {
    content.labels = random_labels(random, existing, sample.valid_labels);
  }
  add_tensors(random, sample.tokens, content, tensors);
  return content;
}

model::SampleMeta random_origin(Random& random, const model::PlanSample& sample) {
  model::SampleMeta origin{.id = sample.id,
                           .tokens = sample.tokens,
                           .valid_labels = sample.valid_labels,
                           .first_position = sample.first_position,
                           .image_patches = {},
                           .place = {.shard = model::ShardIndex(below32(random, 9)),
                                     .offset_bytes = random.next(),
                                     .size_bytes = random.next()}};
  for (std::uint64_t pictures = random.below(3); pictures > 0; --pictures) {
    origin.image_patches.push_back(below32(random, 1'000));
  }
  return origin;
}

Status differ(std::string_view what) {
  return Status::internal(std::string(what) + " differs from what was put in");
}

/// For each label of a stretch whether it counts.
std::vector<bool> mask_of(std::uint32_t existing, bool all, std::span<const LabelInterval> labels) {
  std::vector<bool> mask(existing, all);
  for (const auto& [begin, end] : labels) {
    for (std::uint32_t label = begin; label < end; ++label) mask.at(label) = true;
  }
  return mask;
}

Status compare_labels(const RunPiece& piece, const SampleContent& content) {
  const std::uint32_t existing = existing_labels(piece.hi - piece.lo, piece.has_next_token);
  const std::vector<bool> whole =
      mask_of(existing_labels(piece.sample_tokens, content.next_token.has_value()),
              !content.labels.has_value(),
              content.labels ? std::span<const LabelInterval>(*content.labels)
                             : std::span<const LabelInterval>());
  std::vector<bool> expected;
  for (std::uint32_t i = 0; i < existing; ++i) expected.push_back(whole.at(piece.lo + i));
  if (mask_of(existing, piece.all_labels, piece.labels) != expected) return differ("a label");
  const bool all = std::ranges::find(expected, false) == expected.end();
  return piece.all_labels == all ? Status::ok() : differ("all_labels");
}

Status compare_tensors(const RunPiece& piece, const SampleContent& content) {
  std::size_t next = 0;
  for (const SampleTensor& tensor : content.tensors) {
    if (tensor.token < piece.lo || tensor.token >= piece.hi) continue;
    if (next == piece.tensors.size()) return differ("the number of tensors");
    const RunPiece::Tensor& got = piece.tensors[next++];
    if (got.token + piece.lo != tensor.token || got.info != tensor.info ||
        !std::ranges::equal(got.bytes, tensor.bytes)) {
      return differ("a tensor");
    }
  }
  return next == piece.tensors.size() ? Status::ok() : differ("the number of tensors");
}

Status compare_micro_batch(const RunMicroBatch& got, const TestStep& step, TokenWidth width,
                           std::uint32_t number) {
  const model::MicroBatch& planned = step.plan.micro_batches[number];
  const model::Task& task = step.plan.tasks[planned.task.value];
  if (got.task != planned.task.value || got.offload != task.offload) return differ("a task");
  if (!std::ranges::equal(got.ring, step.plan.members_of(task))) return differ("a ring");
  if (got.pieces.size() != planned.pieces.size()) return differ("the number of pieces");
  for (std::uint32_t i = 0; i < planned.pieces.size(); ++i) {
    BL_RETURN_IF_ERROR(compare_piece(got.pieces[i], step, width, planned.pieces.begin + i));
  }
  return Status::ok();
}

Status compare_events(const Run& run, const model::StepPlan& plan) {
  std::vector<RunEvent> expected;
  const auto own = plan.micro_batches_of(run.rank);
  for (const auto& [task, phase] : plan.events) {
    for (std::uint32_t i = 0; i < own.size(); ++i) {
      if (own[i].task == task) expected.push_back({.micro_batch = i, .phase = phase});
    }
  }
  return run.events == expected ? Status::ok() : differ("the order of events");
}

}  // namespace

TestStep make_step(model::StepPlan plan, TokenWidth width, std::uint64_t seed) {
  Random random(seed);
  TestStep step;
  step.plan = std::move(plan);
  step.tensors.resize(step.plan.samples.size());
  for (std::size_t i = 0; i < step.plan.samples.size(); ++i) {
    const model::PlanSample& sample = step.plan.samples[i];
    SampleContent content = random_content(random, sample, step.tensors[i]);
    content.tokens =
        step.tokens.emplace_back(random_bytes(random, sample.tokens * token_bytes(width)));
    step.samples.push_back(std::move(content));
    step.origins.push_back(random_origin(random, sample));
  }
  return step;
}

model::StepPlan packed_plan(const PackedShape& shape) {
  model::StepPlan plan = model::random_plan({.seed = 1, .ranks = 1, .samples = 0});
  for (std::uint32_t i = 0; i < shape.samples; ++i) {
    plan.samples.push_back({.id = {{}, {}, model::RecordIndex(i), {}},
                            .tokens = shape.tokens,
                            .valid_labels = shape.tokens - 1,
                            .first_position = 0});
    plan.pieces.push_back({model::SampleIndex(i), 0, shape.tokens});
    plan.global_valid_labels += shape.tokens - 1;
  }
  plan.micro_batches = {{model::TaskIndex(0), {0, shape.samples}}};
  plan.ranks = {{0, 1}};
  plan.tasks = {{{0, 1}, model::OffloadRatio(0), 0}};
  plan.members = {model::HdpRank(0)};
  plan.events = {{model::TaskIndex(0), model::Phase::kForward},
                 {model::TaskIndex(0), model::Phase::kBackward}};
  plan.digest = model::plan_digest(plan);
  return plan;
}

std::ostream& operator<<(std::ostream& out, const BatchShape& shape) {
  return out << fmt::format("{{.seed = {}, .steps = {}, .ranks = {}, .samples = {}, .width = k{}}}",
                            shape.seed, shape.steps, shape.ranks, shape.samples,
                            8 * token_bytes(shape.width));
}

BuiltBatch TestBatch::build() const {
  std::vector<StepContent> contents;
  for (const TestStep& step : steps) contents.push_back(step.content());
  auto built = build_batch(options, contents);
  BL_CHECK(built.is_ok(), built.status().to_string());
  return std::move(built).value();
}

TestBatch random_batch(const BatchShape& shape) {
  Random random(shape.seed);
  TestBatch batch;
  batch.options.identity = test_identity();
  batch.options.token_width = shape.width;
  batch.options.origin = {.sources = {{.name = "web", .digest = random.next()},
                                      {.name = "code", .digest = random.next()},
                                      {.name = "books", .digest = random.next()}},
                          .planner = "planner 0.1.0",
                          .planner_digest = random.next(),
                          .capacity_tokens = 8'192,
                          .max_sample_tokens = 65'536,
                          .min_share_tokens = 1'024,
                          .offload = true,
                          .cost_model = "h200",
                          .cost_table = random_bytes(random, random.below(40))};
  for (std::uint32_t position = 0; position < shape.steps; ++position) {
    model::StepPlan plan = model::random_plan({.seed = random.next(),
                                               .ranks = shape.ranks,
                                               .samples = below32(random, shape.samples + 1)});
    for (model::PlanSample& sample : plan.samples) {
      // All labels, as in pretraining; of half the samples.
      if (random.chance(500)) sample.valid_labels = sample.tokens - below32(random, 2);
    }
    plan.global_valid_labels = 0;
    for (const model::PlanSample& sample : plan.samples) {
      plan.global_valid_labels += sample.valid_labels;
    }
    plan.digest = model::plan_digest(plan);
    batch.steps.push_back(make_step(std::move(plan), shape.width, random.next()));
  }
  return batch;
}

rc::Gen<BatchShape> any_batch_shape() {
  return rc::gen::map(rc::gen::tuple(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(1u, 5u),
                                     rc::gen::inRange(1u, 6u), rc::gen::inRange(0u, 13u),
                                     rc::gen::arbitrary<bool>()),
                      [](const std::tuple<std::uint64_t, std::uint32_t, std::uint32_t,
                                          std::uint32_t, bool>& shape) {
                        const auto& [seed, steps, ranks, samples, wide] = shape;
                        return BatchShape{.seed = seed,
                                          .steps = steps,
                                          .ranks = ranks,
                                          .samples = samples,
                                          .width = wide ? TokenWidth::k32 : TokenWidth::k16};
                      });
}

TestBatch small_batch(TokenWidth width) {
  // A seed for which all of it occurs; the test of this fixture looks.
  return random_batch({.seed = 11, .steps = 2, .ranks = 2, .samples = 6, .width = width});
}

BatchIdentity test_identity() {
  return {.stream = test_uuid(1), .producer = "p", .term = Term(3), .seq = Seq(7)};
}

Bytes object_of(const BuiltBatch& batch) {
  return objstore::concatenate(batch.parts);
}

BatchContext context_of(const BatchIdentity& identity, const BuiltBatch& batch) {
  return {.key = "d/key",
          .identity = identity,
          .steps = batch.steps,
          .ranks = batch.ranks,
          .size_bytes = batch.size_bytes};
}

Entry entry_of(const BatchIdentity& identity, const BuiltBatch& batch) {
  return {.first_step = Step(40),
          .steps = batch.steps,
          .producer = identity.producer,
          .term = identity.term,
          .seq = identity.seq,
          .nonce = Nonce(0x1234),
          .size_bytes = batch.size_bytes,
          .ranks = batch.ranks,
          .run_table = batch.run_table};
}

void put_object(objstore::ObjectStore& objects, const Entry& entry, ByteSpan object) {
  const auto reply = objstore::put_bytes(objects, data_key(entry.object()), object,
                                         objstore::PutCondition::none(), {});
  BL_CHECK(reply.is_ok(), "an object can be put");
}

std::vector<std::vector<RunRow>> rows_of(const BatchContext& context, ByteSpan object) {
  std::vector<std::vector<RunRow>> rows;
  for (model::HdpRank rank(0); rank.value < context.ranks; ++rank) {
    const ByteSpan bytes =
        object.subspan(rank_rows_offset(rank, context.steps), rank_rows_bytes(context.steps));
    rows.push_back(decode_rank_rows(context, rank, bytes).value());
  }
  return rows;
}

Status compare_piece(const RunPiece& piece, const TestStep& step, TokenWidth width,
                     std::uint32_t number) {
  const model::Piece& planned = step.plan.pieces[number];
  const model::PlanSample& sample = step.plan.samples[planned.sample.value];
  const SampleContent& content = step.samples[planned.sample.value];
  if (piece.sample != sample.id || piece.sample_tokens != sample.tokens || piece.lo != planned.lo ||
      piece.hi != planned.hi || piece.first_position != sample.first_position) {
    return differ("a piece");
  }
  const std::size_t id_bytes = token_bytes(width);
  if (!std::ranges::equal(piece.tokens, content.tokens.subspan(planned.lo * id_bytes,
                                                               planned.tokens() * id_bytes))) {
    return differ("a token");
  }
  const bool at_end = planned.hi == sample.tokens;
  if (piece.has_next_token != (!at_end || content.next_token.has_value())) {
    return differ("has_next_token");
  }
  const std::uint32_t next =
      at_end ? content.next_token.value_or(0) : token_at(content.tokens, width, planned.hi);
  if (piece.next_token.size() != id_bytes || token_at(piece.next_token, width, 0) != next) {
    return differ("the look-ahead");
  }
  BL_RETURN_IF_ERROR(compare_labels(piece, content));
  return compare_tensors(piece, content);
}

Status compare_run(const Run& run, const TestBatch& batch, std::uint32_t position,
                   model::HdpRank rank) {
  const TestStep& step = batch.steps[position];
  if (run.identity != batch.options.identity || run.position != position || run.rank != rank ||
      run.token_width != batch.options.token_width) {
    return differ("the identity");
  }
  if (run.samples_digest != samples_digest(step.plan.samples) ||
      run.plan_digest != step.plan.digest ||
      run.global_valid_labels != step.plan.global_valid_labels) {
    return differ("a digest, or the number of labels");
  }
  const model::IndexRange own = step.plan.ranks[rank.value];
  if (run.micro_batches.size() != own.size()) return differ("the number of micro-batches");
  for (std::uint32_t i = 0; i < own.size(); ++i) {
    BL_RETURN_IF_ERROR(
        compare_micro_batch(run.micro_batches[i], step, run.token_width, own.begin + i));
  }
  return compare_events(run, step.plan);
}

Status compare_index(const BatchIndex& index, const TestBatch& batch) {
  if (index.identity != batch.options.identity || index.token_width != batch.options.token_width) {
    return differ("the identity");
  }
  if (index.origin != batch.options.origin) return differ("the origin");
  if (index.steps.size() != batch.steps.size()) return differ("the number of steps");
  for (std::size_t position = 0; position < index.steps.size(); ++position) {
    if (index.steps[position].plan != batch.steps[position].plan) return differ("a plan");
    if (index.steps[position].origins != batch.steps[position].origins) {
      return differ("where a sample came from");
    }
  }
  return Status::ok();
}

}  // namespace batchloom::store
