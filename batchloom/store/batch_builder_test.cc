// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_builder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/plan_testing.h"
#include "batchloom/store/batch_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;

Status build(const TestBatch& batch) {
  std::vector<StepContent> contents;
  for (const TestStep& step : batch.steps) contents.push_back(step.content());
  return build_batch(batch.options, contents).status();
}

RC_GTEST_PROP(BatchBuilder, EveryRunComesBackByteForByte, ()) {
  const TestBatch batch = random_batch(*any_batch_shape());
  const BuiltBatch built = batch.build();
  const auto object = std::make_shared<const Bytes>(object_of(built));
  RC_ASSERT(object->size() == built.size_bytes);
  const BatchContext context = context_of(batch.options.identity, built);
  const auto rows = rows_of(context, *object);
  for (HdpRank rank(0); rank.value < built.ranks; ++rank) {
    for (std::uint32_t position = 0; position < built.steps; ++position) {
      const ExpectedRun expected{.key = context.key,
                                 .identity = context.identity,
                                 .position = position,
                                 .rank = rank,
                                 .row = rows[rank.value][position]};
      const auto run = decode_run(expected, object, expected.row.offset_bytes);
      if (!run.is_ok()) RC_FAIL(run.status().to_string());
      const Status same = compare_run(*run, batch, position, rank);
      if (!same.is_ok()) RC_FAIL(same.to_string());
    }
  }
}

RC_GTEST_PROP(BatchBuilder, TheEndsAndTheTableFrameTheRuns, ()) {
  const TestBatch batch = random_batch(*any_batch_shape());
  const BuiltBatch built = batch.build();
  const Bytes object = object_of(built);
  const BatchContext context = context_of(batch.options.identity, built);
  const std::uint64_t runs_begin = first_run_offset(built.ranks, built.steps);
  const auto front = decode_batch_front(context, ByteSpan(object).first(runs_begin));
  if (!front.is_ok()) RC_FAIL(front.status().to_string());
  RC_ASSERT(front->header.payload_bytes == built.payload_bytes);
  RC_ASSERT(front->header.token_width == batch.options.token_width);
  const auto index = decode_batch_footer(context, ByteSpan(object).last(kBatchFooterBytes));
  if (!index.is_ok()) RC_FAIL(index.status().to_string());
  RC_ASSERT(index->offset_bytes == front->runs_end);
  const std::size_t table_bytes = built.ranks * rank_rows_bytes(built.steps);
  RC_ASSERT(std::ranges::equal(built.run_table,
                               ByteSpan(object).subspan(kBatchHeaderBytes, table_bytes)));
}

RC_GTEST_PROP(BatchBuilder, EqualInputGivesEqualBytes, ()) {
  const BatchShape shape = *any_batch_shape();
  RC_ASSERT(object_of(random_batch(shape).build()) == object_of(random_batch(shape).build()));
}

TEST(BatchBuilderRunTable, IsCopiedWhereAnEntryCanCarryIt) {
  const auto built = [](std::uint32_t ranks, std::uint32_t steps) {
    return random_batch({.seed = 1, .steps = steps, .ranks = ranks, .samples = 2}).build();
  };
  EXPECT_EQ(built(128, 1).run_table.size(), run_table_max_bytes(128, 1));
  EXPECT_EQ(built(64, 2).run_table.size(), run_table_max_bytes(64, 2));
  EXPECT_TRUE(built(129, 1).run_table.empty());
  EXPECT_TRUE(built(65, 2).run_table.empty());
}

TEST(BatchBuilderParts, BorrowTokensAndTensors) {
  const TestBatch batch = small_batch();
  const BuiltBatch built = batch.build();
  std::size_t borrowed = 0;
  for (const ByteSpan part : built.parts) {
    const bool own = std::ranges::any_of(built.owned, [&](const Bytes& bytes) {
      return part.data() >= bytes.data() && part.data() < bytes.data() + bytes.size();
    });
    if (!own) borrowed += part.size();
  }
  std::size_t payload = 0;
  for (const TestStep& step : batch.steps) {
    for (const SampleContent& sample : step.samples) {
      payload += sample.tokens.size();
      for (const SampleTensor& tensor : sample.tensors) payload += tensor.bytes.size();
    }
  }
  EXPECT_EQ(borrowed, payload);
}

/// 100 samples of one token each on one rank, whose tokens follow each other in `arena`.
BuiltBatch build_from_arena(const Bytes& arena) {
  const model::StepPlan plan = packed_plan({.samples = 100, .tokens = 1});
  TestStep step = make_step(plan, TokenWidth::k16, 1);
  for (std::size_t i = 0; i < step.samples.size(); ++i) {
    step.samples[i] = {.tokens = ByteSpan(arena).subspan(2 * i, 2),
                       .next_token = std::nullopt,
                       .labels = std::nullopt,
                       .tensors = {}};
  }
  const StepContent content = step.content();
  const BatchOptions options{.identity = test_identity(),
                             .token_width = TokenWidth::k16,
                             .origin = {.sources = {{"web", 1}}}};
  return build_batch(options, std::span(&content, 1)).value();
}

/// Of reading each run of the object.
std::vector<Status> run_statuses(const TestBatch& batch, const BuiltBatch& built) {
  const auto object = std::make_shared<const Bytes>(object_of(built));
  const BatchContext context = context_of(batch.options.identity, built);
  const auto rows = rows_of(context, *object);
  std::vector<Status> statuses;
  for (HdpRank rank(0); rank.value < built.ranks; ++rank) {
    for (std::uint32_t position = 0; position < built.steps; ++position) {
      const RunRow row = rows[rank.value][position];
      const ExpectedRun expected{context.key, context.identity, position, rank, row};
      statuses.push_back(decode_run(expected, object, row.offset_bytes).status());
    }
  }
  return statuses;
}

RC_GTEST_PROP(BatchBuilderTokensCrc, ChangesNothingWhereItIsRight, ()) {
  TestBatch batch = random_batch(*any_batch_shape());
  const Bytes without = object_of(batch.build());
  for (TestStep& step : batch.steps) {
    for (SampleContent& sample : step.samples) sample.tokens_crc = crc32c(sample.tokens);
  }
  RC_ASSERT(object_of(batch.build()) == without);
}

TEST(BatchBuilderTokensCrc, GoesIntoTheObjectAsItIs) {
  TestBatch batch;
  batch.options = {.identity = test_identity(),
                   .token_width = TokenWidth::k16,
                   .origin = {.sources = {{"web", 1}}}};
  batch.steps.push_back(make_step(packed_plan({.samples = 3, .tokens = 5}), TokenWidth::k16, 1));
  EXPECT_TRUE(run_statuses(batch, batch.build())[0].is_ok());
  SampleContent& sample = batch.steps[0].samples[1];
  sample.tokens_crc = crc32c(sample.tokens) + 1;
  EXPECT_TRUE(run_statuses(batch, batch.build())[0].is(ErrorKind::kCorruption));
}

TEST(BatchBuilderParts, NeighboursInMemoryBecomeOne) {
  const Bytes arena(200, std::byte{1});
  const BuiltBatch built = build_from_arena(arena);
  // Front, the run's header, padding, all tokens, the small columns, index, footer.
  ASSERT_EQ(built.parts.size(), 7U);
  EXPECT_EQ(built.parts[3].data(), arena.data());
  EXPECT_EQ(built.parts[3].size(), 200U);
}

TEST(BatchBuilderParts, StayValidWhenTheBatchIsMoved) {
  BuiltBatch built = small_batch().build();
  const TestBatch batch = small_batch();
  built = batch.build();
  const Bytes before = object_of(built);
  const BuiltBatch moved = std::move(built);
  EXPECT_EQ(object_of(moved), before);
}

TEST(BatchBuilderPayload, IsWhatTheColumnsHold) {
  const Bytes arena(200, std::byte{1});
  const BuiltBatch built = build_from_arena(arena);
  EXPECT_EQ(built.payload_bytes, 200U + 200U);  // Tokens and look-ahead.
}

class BatchBuilderRefuses : public testing::Test {
 protected:
  void expect_invalid(std::string_view reason) const {
    const Status status = build(batch_);
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << reason << ": " << status.to_string();
    EXPECT_NE(status.message().find(reason), std::string_view::npos) << status.message();
  }
  void change_plan(std::size_t position, const std::function<void(model::StepPlan&)>& change) {
    change(batch_.steps[position].plan);
    batch_.steps[position].plan.digest = model::plan_digest(batch_.steps[position].plan);
  }
  std::string sample_of(std::size_t position, std::size_t sample) const {
    return "step " + std::to_string(position) + ", sample " +
           to_string(batch_.steps[position].plan.samples[sample].id);
  }

  TestBatch batch_ = small_batch();
};

TEST_F(BatchBuilderRefuses, NothingElse) {
  EXPECT_TRUE(build(batch_).is_ok()) << build(batch_).to_string();
}

TEST_F(BatchBuilderRefuses, AnIdentityThatNoKeyHas) {
  batch_.options.identity.producer = "P";
  expect_invalid("the producer");
  batch_.options.identity = test_identity();
  batch_.options.identity.term = Term(0);
  expect_invalid("term 0");
  batch_.options.identity = test_identity();
  batch_.options.token_width = static_cast<TokenWidth>(3);
  expect_invalid("token ids of 3 bytes");
}

TEST_F(BatchBuilderRefuses, LongNames) {
  batch_.options.origin.planner.assign(256, 'x');
  expect_invalid("the name of the planner has 256 bytes");
}

TEST_F(BatchBuilderRefuses, ASourceWithoutAName) {
  batch_.options.origin.sources.clear();
  expect_invalid(sample_of(0, 0) + ": its source is not among the 0 that are named");
}

TEST_F(BatchBuilderRefuses, NoSteps) {
  batch_.steps.clear();
  expect_invalid("at least 1 step");
  const StepContent nothing;
  const Status status = build_batch(batch_.options, std::span(&nothing, 1)).status();
  EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << status.to_string();
}

TEST_F(BatchBuilderRefuses, PlansThatMayNotBeExecuted) {
  change_plan(1, [](model::StepPlan& plan) { plan.pieces[0].hi += 1000; });
  expect_invalid("step 1: piece 0 is tokens");
  batch_ = small_batch();
  change_plan(1, [](model::StepPlan& plan) { plan.global_valid_labels += 1; });
  expect_invalid("step 1: the samples have");
}

TEST_F(BatchBuilderRefuses, AStaleDigest) {
  batch_.steps[0].plan.digest += 1;
  expect_invalid("step 0: the plan's digest is");
}

TEST_F(BatchBuilderRefuses, OtherRanks) {
  batch_.steps[1] = make_step(model::small_plan(), TokenWidth::k16, 1);
  expect_invalid("step 1 is planned for 4 ranks, step 0 for 2");
}

TEST_F(BatchBuilderRefuses, AnotherNumberOfPayloads) {
  batch_.steps[1].samples.pop_back();
  expect_invalid("step 1: ");
  batch_ = small_batch();
  batch_.steps[1].origins.pop_back();
  expect_invalid("origins are given");
}

TEST_F(BatchBuilderRefuses, PayloadsThatAreNotAsPlanned) {
  SampleContent& sample = batch_.steps[1].samples[0];
  const ByteSpan tokens = sample.tokens;
  sample.tokens = tokens.first(tokens.size() - 1);
  expect_invalid(sample_of(1, 0) + ": has " + std::to_string(tokens.size() - 1));
  sample.tokens = tokens;
  sample.labels = {{7, 7}};
  expect_invalid(sample_of(1, 0) + ": counts labels [7, 7)");
}

TEST_F(BatchBuilderRefuses, OriginsOfOtherSamples) {
  const auto refused = [this](const std::function<void(model::SampleMeta&)>& change) {
    batch_ = small_batch();
    change(batch_.steps[0].origins[1]);
    expect_invalid(sample_of(0, 1) + ": its origin");
  };
  refused([](model::SampleMeta& origin) { ++origin.id.index; });
  refused([](model::SampleMeta& origin) { ++origin.tokens; });
  refused([](model::SampleMeta& origin) { ++origin.valid_labels; });
  refused([](model::SampleMeta& origin) { ++origin.first_position; });
}

TEST_F(BatchBuilderRefuses, TensorsThatAreNotAsLargeAsTheirShape) {
  batch_.steps[0].samples[0].tensors = {
      {.token = 0, .info = {"t", TensorType::kU8, {4}}, .bytes = {}}};
  expect_invalid(sample_of(0, 0) + ": tensor 't' has 0 bytes, its shape makes 4");
}

TEST_F(BatchBuilderRefuses, ARunThatARowCannotHold) {
  // 4 GiB and more, all of it the same 64 MiB.
  const Bytes buffer(std::size_t{64} << 20);
  const TensorInfo info{"t", TensorType::kU8, {static_cast<std::uint32_t>(buffer.size())}};
  batch_.steps[1].samples[0].tensors.assign(64, {.token = 0, .info = info, .bytes = buffer});
  expect_invalid("step 1: the run of rank ");
}

}  // namespace
}  // namespace batchloom::store
