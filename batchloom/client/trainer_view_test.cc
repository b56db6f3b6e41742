// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/trainer_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/store/piece_content.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using model::Piece;
using store::RunMicroBatch;
using store::RunPiece;
using store::TokenWidth;
using testing::Each;
using testing::ElementsAre;

/// What a trainer must get of one micro-batch.
struct ExpectedArrays {
  std::vector<std::int32_t> tokens, positions, cu_seqlens = {0};
  std::vector<std::int64_t> labels;
};

/// Token by token, from the whole samples.
ExpectedArrays expected_arrays(const TestStep& step, std::span<const Piece> pieces) {
  ExpectedArrays expected;
  for (const Piece& piece : pieces) {
    const model::PlanSample& planned = step.plan.samples[piece.sample.value];
    const SampleData& sample = step.samples[piece.sample.value];
    const auto id = [&](std::uint32_t i) { return store::token_at(sample.tokens, step.width, i); };
    for (std::uint32_t i = piece.lo; i < piece.hi; ++i) {
      expected.tokens.push_back(static_cast<std::int32_t>(id(i)));
      expected.positions.push_back(static_cast<std::int32_t>(planned.first_position + i));
      std::int64_t label = kNoLabel;
      if (sample.has_label(planned, i)) {
        label = i + 1 < planned.tokens ? id(i + 1) : sample.next_token.value();
      }
      expected.labels.push_back(label);
    }
    expected.cu_seqlens.push_back(static_cast<std::int32_t>(expected.tokens.size()));
  }
  if (pieces.empty()) return {{0}, {0}, {0, 1}, {kNoLabel}};
  return expected;
}

/// The step of `shape`, with ids that an int32 holds and positions that differ.
TestStep step_for_trainers(const TestStepShape& shape) {
  TestStep step = make_step(shape);
  if (step.width == TokenWidth::k16) return step;
  for (SampleData& sample : step.samples) {
    for (std::size_t i = 3; i < sample.tokens.size(); i += 4) sample.tokens[i] &= std::byte{0x7f};
  }
  return step;
}

/// What `rank` reads of the step, stored as it is.
StepPtr read_as(const TestStep& step, HdpRank rank) {
  const auto runtime = make_real_runtime();
  ClientWorld world(*runtime, View::kMetered);
  world.producer().append(std::span(&step, 1));
  const auto consumer = must(Consumer::open(world.feed(), {.rank = rank}, {}));
  return must(consumer->next({}));
}

template <class T>
bool is_aligned(std::span<T> array) {
  return reinterpret_cast<std::uintptr_t>(array.data()) % 64 == 0;
}

RC_GTEST_PROP(TrainerView, HoldsEveryTokenWithItsLabelAndPosition, ()) {
  const TestStep step =
      step_for_trainers({.seed = *rc::gen::arbitrary<std::uint64_t>(),
                         .ranks = *rc::gen::inRange(1U, 5U),
                         .samples = *rc::gen::inRange(0U, 12U),
                         .max_tokens = *rc::gen::element(40U, 200U),
                         .width = *rc::gen::element(TokenWidth::k16, TokenWidth::k32)});
  Counters counters;
  BufferPool pool(1 << 20, counters);
  const HdpRank rank(*rc::gen::inRange(0U, static_cast<std::uint32_t>(step.plan.ranks.size())));
  const TrainerView view = must(view_for_trainer(read_as(step, rank), pool));
  const auto planned = step.plan.micro_batches_of(rank);
  RC_ASSERT(view.micro_batches.size() == planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const ExpectedArrays expected = expected_arrays(step, step.plan.pieces_of(planned[i]));
    const MicroBatchArrays& arrays = view.micro_batches[i];
    RC_ASSERT(std::ranges::equal(arrays.tokens, expected.tokens));
    RC_ASSERT(std::ranges::equal(arrays.labels, expected.labels));
    RC_ASSERT(std::ranges::equal(arrays.positions, expected.positions));
    RC_ASSERT(std::ranges::equal(arrays.cu_seqlens, expected.cu_seqlens));
    RC_ASSERT(is_aligned(arrays.tokens) && is_aligned(arrays.labels));
    RC_ASSERT(is_aligned(arrays.positions) && is_aligned(arrays.cu_seqlens));
  }
}

/// A step of one micro-batch that owns its bytes, made by hand.
class HandMadeStep {
 public:
  explicit HandMadeStep(TokenWidth width = TokenWidth::k32) { batch_.token_width = width; }

  /// A piece from token `lo` of its sample on.
  HandMadeStep& add(std::uint32_t lo, const std::vector<std::uint32_t>& ids,
                    std::optional<std::uint32_t> next) {
    RunPiece piece;
    piece.sample.index = model::RecordIndex(7);
    piece.lo = lo;
    piece.hi = lo + static_cast<std::uint32_t>(ids.size());
    piece.tokens = stored(ids);
    piece.has_next_token = next.has_value();
    piece.next_token = stored({next.value_or(0)});
    piece.all_labels = true;
    pieces_.push_back(std::move(piece));
    return *this;
  }

  RunPiece& last() { return pieces_.back(); }

  Result<TrainerView> view() {
    batch_.micro_batches = {RunMicroBatch{.task = 3, .offload = {}, .ring = {}, .pieces = pieces_}};
    return view_for_trainer(std::make_shared<const StepBatch>(batch_), pool_);
  }

 private:
  ByteSpan stored(const std::vector<std::uint32_t>& ids) {
    const std::size_t width = store::token_bytes(batch_.token_width);
    auto bytes = std::make_shared<Bytes>(ids.size() * width);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::ranges::copy(std::as_bytes(std::span(&ids[i], 1)).first(width),
                        bytes->begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    batch_.buffers.push_back(bytes);
    return *bytes;
  }

  Counters counters_;
  BufferPool pool_{1 << 20, counters_};
  StepBatch batch_;
  std::vector<RunPiece> pieces_;
};

TEST(TrainerView, LabelsOfAPieceInTheMiddleOfItsRecord) {
  const TrainerView view =
      must(HandMadeStep(TokenWidth::k16).add(2, {10, 11, 12}, 13).add(0, {20}, {}).view());
  const MicroBatchArrays& arrays = view.micro_batches.at(0);
  EXPECT_THAT(arrays.tokens, ElementsAre(10, 11, 12, 20));
  EXPECT_THAT(arrays.labels, ElementsAre(11, 12, 13, -100));
  EXPECT_THAT(arrays.positions, ElementsAre(2, 3, 4, 0));
  EXPECT_THAT(arrays.cu_seqlens, ElementsAre(0, 3, 4));
}

TEST(TrainerView, LabelsThatDoNotCount) {
  HandMadeStep step;
  step.add(0, {1, 2, 3, 4, 5}, 6);
  step.last().all_labels = false;
  EXPECT_THAT(must(step.view()).micro_batches[0].labels, Each(kNoLabel)) << "no interval: none";
  step.last().labels = {{1, 2}, {4, 5}};
  EXPECT_THAT(must(step.view()).micro_batches[0].labels, ElementsAre(-100, 3, -100, -100, 6));
  step.last().labels = {{0, 4}};
  EXPECT_THAT(must(step.view()).micro_batches[0].labels, ElementsAre(2, 3, 4, 5, -100));
}

TEST(TrainerView, AFillerIsOneTokenWithoutALabel) {
  const TrainerView view = must(HandMadeStep().view());
  const MicroBatchArrays& arrays = view.micro_batches.at(0);
  EXPECT_THAT(arrays.tokens, ElementsAre(0));
  EXPECT_THAT(arrays.labels, ElementsAre(-100));
  EXPECT_THAT(arrays.positions, ElementsAre(0));
  EXPECT_THAT(arrays.cu_seqlens, ElementsAre(0, 1));
}

TEST(TrainerView, RefusesIdsThatAnInt32DoesNotHold) {
  constexpr std::uint32_t kMost = 0x7fff'ffff;
  EXPECT_TRUE(HandMadeStep().add(0, {kMost, kMost}, kMost).view().is_ok());
  for (std::size_t place = 0; place < 4; ++place) {
    std::vector<std::uint32_t> ids(4, 1);
    ids[place] = kMost + 1;
    const std::uint32_t next = ids.back();
    ids.pop_back();
    EXPECT_TRUE(is_error(HandMadeStep().add(0, ids, next).view().status(), ErrorKind::kInvalid,
                         {"sample 0:0:7:0", "token ids above 2147483647"}))
        << "place " << place;
  }
}

TEST(TrainerView, RefusesPositionsThatAnInt32DoesNotHold) {
  HandMadeStep step;
  step.add(1, {1, 2}, {});
  step.last().first_position = 0x7fff'ffff - 2;
  EXPECT_THAT(must(step.view()).micro_batches[0].positions, ElementsAre(0x7ffffffe, 0x7fffffff));
  for (const std::uint64_t first : {std::uint64_t{0x7fff'ffff - 1}, UINT64_MAX}) {
    step.last().first_position = first;
    EXPECT_TRUE(is_error(step.view().status(), ErrorKind::kInvalid,
                         {"sample 0:0:7:0", "int32 positions reach 2147483647"}));
  }
}

TEST(TrainerView, RefusesAMicroBatchLongerThanAnInt32Counts) {
  HandMadeStep step;
  for (int i = 0; i < 2; ++i) {
    step.add(0, {1}, {});
    step.last().hi = 0x4000'0000;
  }
  EXPECT_TRUE(is_error(step.view().status(), ErrorKind::kInvalid,
                       {"task 3", "2147483648 tokens", "smaller capacity"}));
}

}  // namespace
}  // namespace batchloom::client
