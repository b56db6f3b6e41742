// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/replanned_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/client/client_testing.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/store/piece_content.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using model::Piece;
using model::StepPlan;
using store::RunPiece;
using testing::ElementsAre;

/// Pieces of a step as a reader hands them out. Its step outlives it.
class StoredPieces {
 public:
  StoredPieces(const TestStep& step, std::span<const std::uint32_t> places) {
    next_tokens_.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      pieces_.push_back(make_piece(step, step.plan.pieces[places[i]], next_tokens_[i]));
    }
  }
  std::span<const RunPiece> pieces() const { return pieces_; }

 private:
  static RunPiece make_piece(const TestStep& step, const Piece& planned, Bytes& next_token) {
    const SampleData& data = step.samples[planned.sample.value];
    const store::SampleContent sample = data.content();
    const store::PieceContent content = store::cut_piece(planned, step.width, sample);
    RunPiece piece;
    piece.lo = planned.lo;
    piece.hi = planned.hi;
    piece.has_next_token = content.next_token.has_value();
    piece.tokens = content.tokens;
    next_token.resize(4);
    store_le(content.next_token.value_or(0), next_token.data());
    piece.next_token = ByteSpan(next_token).first(store::token_bytes(step.width));
    piece.all_labels = content.all_labels;
    piece.labels = content.labels;
    for (const SampleData::Tensor& tensor : data.tensors) {
      if (tensor.token < planned.lo || tensor.token >= planned.hi) continue;
      piece.tensors.push_back({tensor.token - planned.lo, tensor.info, tensor.bytes});
    }
    return piece;
  }

  std::vector<Bytes> next_tokens_;
  std::vector<RunPiece> pieces_;
};

/// What every rank of `plan` makes of the stored step.
std::vector<StepPtr> lay_out_all(const TestStep& step, const StepPlan& plan) {
  std::vector<StepPtr> batches;
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    const Replan replan{step.plan, plan, rank};
    EXPECT_TRUE(check_replan(replan).is_ok());
    const std::vector<std::uint32_t> places = overlapping_pieces(replan);
    const StoredPieces stored(step, places);
    batches.push_back(std::make_shared<const StepBatch>(
        must(lay_out_anew(replan, step.width, places, stored.pieces()))));
  }
  return batches;
}

RC_GTEST_PROP(ReplannedStep, AnyPlanOfTheSamplesGetsTheSameContent, ()) {
  const auto width = *rc::gen::element(store::TokenWidth::k16, store::TokenWidth::k32);
  const TestStep step = make_step({.seed = *rc::gen::arbitrary<std::uint64_t>(),
                                   .ranks = *rc::gen::inRange(1U, 9U),
                                   .samples = *rc::gen::inRange(0U, 12U),
                                   .max_tokens = 40,
                                   .width = width});
  const StepPlan plan =
      random_layout(step.plan.samples, *rc::gen::inRange(1U, 17U), *rc::gen::arbitrary<uint64_t>());
  const auto right = hold_step(lay_out_all(step, plan), step, plan);
  if (!right) RC_FAIL(right.message());
}

RC_GTEST_PROP(ReplannedStep, ReadsThePiecesThatOverlapAndNoOthers, ()) {
  const TestStep step = make_step({.seed = *rc::gen::arbitrary<std::uint64_t>(), .ranks = 4});
  const StepPlan plan = random_layout(step.plan.samples, 3, *rc::gen::arbitrary<std::uint64_t>());
  const HdpRank rank(*rc::gen::inRange(0U, 3U));
  std::vector<std::uint32_t> expected;
  for (std::uint32_t place = 0; place < step.plan.pieces.size(); ++place) {
    const Piece& stored = step.plan.pieces[place];
    const auto overlaps = [&](const Piece& piece) {
      return piece.sample == stored.sample && piece.lo < stored.hi && stored.lo < piece.hi;
    };
    for (const model::MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
      if (!std::ranges::any_of(plan.pieces_of(micro_batch), overlaps)) continue;
      expected.push_back(place);
      break;
    }
  }
  RC_ASSERT(overlapping_pieces({step.plan, plan, rank}) == expected);
}

TEST(ReplannedStep, ColumnsBeginAtMultiplesOf64Bytes) {
  const TestStep step = make_step({.seed = 4, .ranks = 3, .samples = 12, .max_tokens = 40});
  const StepPlan plan = random_layout(step.plan.samples, 2, 9);
  std::size_t tensors = 0;
  for (const StepPtr& batch : lay_out_all(step, plan)) {
    ASSERT_EQ(batch->buffers.size(), 1U);
    const std::byte* begin = batch->buffers.front()->data();
    const auto is_aligned = [&](ByteSpan part) { return (part.data() - begin) % 64 == 0; };
    for (const store::RunMicroBatch& micro_batch : batch->micro_batches) {
      if (micro_batch.pieces.empty()) continue;
      EXPECT_TRUE(is_aligned(micro_batch.pieces.front().tokens));
      EXPECT_TRUE(is_aligned(micro_batch.pieces.front().next_token));
      for (const RunPiece& piece : micro_batch.pieces) {
        for (const RunPiece::Tensor& tensor : piece.tensors) {
          EXPECT_TRUE(is_aligned(tensor.bytes));
          ++tensors;
        }
      }
    }
  }
  EXPECT_GT(tensors, 0U);
}

TEST(ReplannedStep, AStoredStepThatLeavesOutTokensIsDamaged) {
  const TestStep step = make_step({.seed = 5, .ranks = 3, .samples = 6});
  const StepPlan plan = random_layout(step.plan.samples, 1, 1);
  const Replan replan{step.plan, plan, HdpRank(0)};
  const std::vector<std::uint32_t> all = overlapping_pieces(replan);
  for (std::size_t left_out = 0; left_out < all.size(); ++left_out) {
    std::vector<std::uint32_t> places = all;
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(left_out));
    const StoredPieces stored(step, places);
    const auto batch = lay_out_anew(replan, step.width, places, stored.pieces());
    const Piece& piece = step.plan.pieces[all[left_out]];
    EXPECT_TRUE(is_error(batch.status(), ErrorKind::kCorruption,
                         {"token " + std::to_string(piece.lo) + " of sample " +
                              to_string(step.plan.samples[piece.sample.value].id),
                          "in no stored piece"}));
  }
}

class CheckReplan : public testing::Test {
 protected:
  Status check(HdpRank rank = HdpRank(0)) const { return check_replan({step_.plan, plan_, rank}); }

  const TestStep step_ = make_step({.seed = 6, .ranks = 4, .samples = 3});
  StepPlan plan_ = random_layout(step_.plan.samples, 2, 3);
};

TEST_F(CheckReplan, TakesAPlanOfTheSameSamples) {
  EXPECT_TRUE(check(HdpRank(0)).is_ok());
  EXPECT_TRUE(check(HdpRank(1)).is_ok());
}

TEST_F(CheckReplan, RefusesARankThatThePlanLacks) {
  EXPECT_TRUE(is_error(check(HdpRank(2)), ErrorKind::kInvalid, {"rank 2", "2 HDP ranks"}));
}

TEST_F(CheckReplan, RefusesOtherSamples) {
  plan_ = random_layout({step_.plan.samples.begin(), step_.plan.samples.end() - 1}, 2, 3);
  EXPECT_TRUE(is_error(check(), ErrorKind::kInvalid, {"2 samples", "has 3"}));
}

TEST_F(CheckReplan, RefusesAnotherOrder) {
  std::vector<model::PlanSample> samples = step_.plan.samples;
  std::swap(samples[1], samples[2]);
  plan_ = random_layout(samples, 2, 3);
  EXPECT_TRUE(is_error(check(), ErrorKind::kInvalid,
                       {"sample number 1", to_string(samples[1].id), to_string(samples[2].id)}));
}

TEST_F(CheckReplan, RefusesSamplesThatAreNotTheStoredOnes) {
  const auto expect_refused = [&](auto change) {
    std::vector<model::PlanSample> samples = step_.plan.samples;
    change(samples[2]);
    plan_ = random_layout(samples, 2, 3);
    EXPECT_TRUE(is_error(check(), ErrorKind::kInvalid, {"sample number 2"}));
  };
  expect_refused([](model::PlanSample& sample) { ++sample.tokens; });
  expect_refused([](model::PlanSample& sample) { ++sample.first_position; });
  expect_refused([](model::PlanSample& sample) { ++sample.id.part; });
  expect_refused([](model::PlanSample& sample) { sample.valid_labels ^= 1; });
}

TEST_F(CheckReplan, RefusesAPlanThatLosesATokenOrHasItTwice) {
  const StepPlan right = plan_;
  const auto longest = std::ranges::max_element(plan_.pieces, {}, &Piece::tokens);
  ASSERT_GT(longest->tokens(), 1U);
  ++longest->lo;
  EXPECT_TRUE(is_error(check(), ErrorKind::kInvalid, {"on no rank"}));
  plan_ = right;
  plan_.pieces[0].hi = 1'000;
  EXPECT_TRUE(check().is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::client
