// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/step_builder.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/construction/corpus_testing.h"
#include "batchloom/store/batch_testing.h"

namespace batchloom::construction {
namespace {

using planning::Balance;
using planning::PlannedStep;
using store::TokenWidth;
using testing::HasSubstr;

store::BatchOptions batch_options(const Corpus& corpus) {
  return {.identity = store::test_identity(),
          .token_width = token_width_for(corpus.shape().vocab),
          .origin = corpus.options()->origin};
}

template <class T>
void shuffle(std::vector<T>& items, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

/// As `corpus` would load it on another day: blocks and their samples in another order.
StepInput shuffled_input(const Corpus& corpus, const PlannedStep& step, std::uint64_t seed) {
  PlannedStep other = step;
  shuffle(other.members, seed);
  StepInput input{step, corpus.load(other)};
  shuffle(input.blocks, seed);
  return input;
}

/// What ranks find in the object, by step and rank.
std::vector<std::vector<std::vector<store::RunMicroBatch>>> runs_of(
    const store::BatchIdentity& identity, const store::BuiltBatch& built,
    const std::shared_ptr<const Bytes>& object) {
  const store::BatchContext context = context_of(identity, built);
  const auto rows = store::rows_of(context, *object);
  std::vector<std::vector<std::vector<store::RunMicroBatch>>> steps(built.steps);
  for (model::HdpRank rank; rank.value < built.ranks; ++rank) {
    for (std::uint32_t position = 0; position < built.steps; ++position) {
      const store::RunRow row = rows[rank.value][position];
      const store::ExpectedRun expected{context.key, identity, position, rank, row};
      steps[position].push_back(
          store::decode_run(expected, object, row.offset_bytes).value().micro_batches);
    }
  }
  return steps;
}

constexpr std::array kAllBalances = {Balance::kNone, Balance::kLpt, Balance::kKarmarkarKarp,
                                     Balance::kTwoLevel, Balance::kHdp};

RC_GTEST_PROP(StepBuilder, RanksGetTheRecords, ()) {
  CorpusShape shape;
  shape.seed = *rc::gen::inRange<std::uint64_t>(0, 1 << 20);
  shape.vocab = *rc::gen::element(300U, 100'000U);
  shape.rule.over_length =
      *rc::gen::element(OverLength::kSplit, OverLength::kTruncate, OverLength::kDrop);
  Corpus corpus(shape);
  const Balance balance = *rc::gen::elementOf(kAllBalances);
  const auto axes = *rc::gen::element<std::string>("dp=1", "dp=3", "dp=2 cp=2", "pp=2 dp=4 tp=2");
  const auto steps = corpus.plan(balance, axes, *rc::gen::inRange<std::size_t>(1, 4));
  std::vector<StepInput> inputs;
  std::vector<StepInput> shuffled;
  for (const PlannedStep& step : steps) {
    inputs.push_back(corpus.input(step));
    shuffled.push_back(shuffled_input(corpus, step, shape.seed));
  }
  const store::BatchOptions options = batch_options(corpus);
  const auto built = build_steps(options, inputs);
  RC_ASSERT(built.status().to_string() == "ok");
  const auto object = std::make_shared<const Bytes>(store::object_of(*built));
  const auto runs = runs_of(options.identity, *built, object);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    RC_ASSERT(corpus.problem(steps[i], runs[i], options.token_width) == "");
    if (balance == Balance::kHdp) continue;
    for (const auto& rank : runs[i]) RC_ASSERT(rank.size() == runs[i][0].size());
  }
  const auto again = build_steps(options, shuffled);
  RC_ASSERT(again.status().to_string() == "ok");
  RC_ASSERT(store::object_of(*again) == *object);
}

/// A step for four ranks, in some of its blocks, and what may be wrong with them.
class WrongBlocks : public testing::Test {
 protected:
  std::string refusal(TokenWidth width = TokenWidth::k16) {
    store::BatchOptions options = batch_options(corpus_);
    options.token_width = width;
    return build_steps(options, std::span(&input_, 1)).status().to_string();
  }
  /// The step with blocks of other members than its own.
  void load(const std::function<void(PlannedStep&)>& change) {
    PlannedStep other = steps_[1];
    change(other);
    input_ = {steps_[1], corpus_.load(other)};
  }
  std::string name(const model::SampleMeta& member) const {
    return "step 1, sample " + to_string(member.id);
  }

  Corpus corpus_{{.seed = 3}};
  std::vector<PlannedStep> steps_ = corpus_.plan(Balance::kTwoLevel, "dp=2 cp=2", 3);
  StepInput input_ = corpus_.input(steps_[1]);
};

TEST_F(WrongBlocks, ThatFitAreTaken) {
  EXPECT_EQ(refusal(), "ok");
  EXPECT_GT(input_.size_bytes(), input_.blocks[0]->size_bytes() + input_.blocks[1]->size_bytes());
}

TEST_F(WrongBlocks, WithoutASample) {
  const model::SampleMeta gone = steps_[1].members[2];
  load([](PlannedStep& step) { step.members.erase(step.members.begin() + 2); });
  EXPECT_THAT(refusal(), HasSubstr("invalid: " + name(gone) + ": is planned, and no block has it"));
  input_.blocks.clear();
  EXPECT_THAT(refusal(), HasSubstr("no block has it; 0 samples of"));
}

TEST_F(WrongBlocks, WithASampleTwice) {
  const model::SampleMeta twice = steps_[1].members[2];
  load([](PlannedStep& step) { step.members.push_back(step.members[2]); });
  EXPECT_THAT(refusal(), HasSubstr("invalid: " + name(twice) + ": is in the blocks twice"));
}

TEST_F(WrongBlocks, WithAForeignSample) {
  for (const std::size_t other : {std::size_t{0}, std::size_t{2}}) {
    for (const model::SampleMeta& foreign : steps_[other].members) {
      load([&](PlannedStep& step) { step.members.push_back(foreign); });
      EXPECT_THAT(refusal(), HasSubstr("invalid: " + name(foreign) + ": is in a block, and not"));
    }
  }
}

TEST_F(WrongBlocks, WithOtherMetadata) {
  load([](PlannedStep& step) { ++step.members[0].place.offset_bytes; });
  EXPECT_THAT(refusal(), HasSubstr(name(steps_[1].members[0]) + ": was loaded with"));
  // Against another plan, since a block refuses a payload that does not fit its own metadata.
  input_ = corpus_.input(steps_[1]);
  ++input_.planned.members[0].tokens;
  EXPECT_THAT(refusal(), HasSubstr(name(steps_[1].members[0]) + ": was loaded with"));
  input_ = corpus_.input(steps_[1]);
  ++input_.planned.layout.plan.samples[0].valid_labels;
  EXPECT_THAT(refusal(), HasSubstr("invalid: the object that begins with step 1: "));
}

TEST_F(WrongBlocks, OfAnotherStepOrWidth) {
  EXPECT_THAT(refusal(TokenWidth::k32), HasSubstr("has token ids of 2 bytes, the stream's have 4"));
  load([](PlannedStep& step) { ++step.step; });
  EXPECT_THAT(refusal(), HasSubstr("step 1: a block of source 0 is of step 2"));
}

TEST_F(WrongBlocks, APlanWhoseSampleIsNoMember) {
  std::erase_if(input_.planned.members, [&](const model::SampleMeta& member) {
    return member.id == input_.planned.layout.plan.samples[0].id;
  });
  input_.blocks = corpus_.load(input_.planned);
  EXPECT_THAT(refusal(), HasSubstr("is in the plan, and no member"));
}

TEST_F(WrongBlocks, RanksWithFewerMicroBatches) {
  model::StepPlan& plan = input_.planned.layout.plan;
  --plan.ranks[3].end;
  EXPECT_THAT(refusal(), HasSubstr("invalid: step 1: rank 3 has"));
  EXPECT_THAT(refusal(), HasSubstr("by \"two_level\" all have the same number"));
}

TEST_F(WrongBlocks, APackWithAHole) {
  const std::vector<StepInput> pack = {corpus_.input(steps_[0]), corpus_.input(steps_[2])};
  EXPECT_THAT(build_steps(batch_options(corpus_), pack).status().to_string(),
              HasSubstr("a pack with step 2 after step 0"));
  EXPECT_TRUE(build_steps(batch_options(corpus_), {}).is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::construction
