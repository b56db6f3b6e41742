// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/step_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using objstore::Operation;
using store::Answer;
using testing::ElementsAre;
using testing::SizeIs;

/// Fetches by hand, without a thread.
class StepFetcherTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(world_.objects().script_is_done()); }

  StepFetcher& fetcher(FetchOptions options = {}) {
    fetcher_ = std::make_unique<StepFetcher>(world_.feed(), std::move(options));
    return *fetcher_;
  }
  /// By the newest head, unless an older one is given.
  Result<FetchedSteps> fetch(Step step, store::HeadPtr head = nullptr) {
    if (head == nullptr) head = must(world_.feed().refresh({}));
    BL_ASSIGN_OR_RETURN(const StepRead read, fetcher_->prepare(head->head, step, {}));
    size_bytes_ = read.size_bytes;
    return read.fetch({});
  }
  FetchedSteps must_fetch(Step step) { return must(fetch(step)); }
  std::vector<std::uint64_t> numbers(const FetchedSteps& fetched) {
    std::vector<std::uint64_t> numbers;
    for (const StepPtr& step : fetched.steps) numbers.push_back(step->step.value);
    return numbers;
  }
  /// Plans every step for so many ranks.
  static PlanStep plan_for(std::uint32_t ranks) {
    return [ranks](const StoredStep& stored) -> Result<model::StepPlan> {
      return random_layout(stored.indexed.plan.samples, ranks, stored.step.value);
    };
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  ClientWorld world_{*runtime_};
  std::unique_ptr<StepFetcher> fetcher_;
  std::uint64_t size_bytes_ = 0;
};

TEST_F(StepFetcherTest, EachRankReadsItsPartOfAStepWithOneGet) {
  world_.producer().append_small(3, 1, 3);
  for (Step step; step < Step(3); ++step) {
    std::vector<StepPtr> batches;
    for (HdpRank rank; rank.value < 3; ++rank) {
      fetcher({.rank = rank, .ranks = 3});
      const std::size_t before = world_.data_gets();
      const FetchedSteps fetched = must_fetch(step);
      EXPECT_EQ(world_.data_gets(), before + 1);
      ASSERT_THAT(fetched.steps, SizeIs(1));
      EXPECT_EQ(fetched.steps[0]->step, step);
      EXPECT_EQ(fetched.steps[0]->producer, "p");
      EXPECT_EQ(fetched.steps[0]->fetched_bytes, size_bytes_);
      EXPECT_EQ(fetched.held_bytes, size_bytes_) << "known before the request";
      batches.push_back(fetched.steps[0]);
    }
    const TestStep& expected = world_.step(step.value);
    EXPECT_TRUE(hold_step(batches, expected, expected.plan));
  }
  EXPECT_EQ(world_.counted("client_rereads"), 0U);
}

TEST_F(StepFetcherTest, APackComesWithOneGet) {
  world_.producer().append_small(2, 4);
  fetcher({.rank = HdpRank(1)});
  const FetchedSteps whole = must_fetch(Step(4));
  EXPECT_EQ(numbers(whole), (std::vector<std::uint64_t>{4, 5, 6, 7}));
  EXPECT_EQ(whole.held_bytes, size_bytes_);
  EXPECT_EQ(whole.steps[0]->fetched_bytes, size_bytes_);
  EXPECT_EQ(whole.steps[1]->fetched_bytes, 0U) << "counted once";
  EXPECT_EQ(whole.steps[0]->buffers, whole.steps[3]->buffers);
  EXPECT_EQ(world_.data_gets(), 1U);
  EXPECT_EQ(world_.counted("client_fetched_bytes"), size_bytes_);
  EXPECT_EQ(world_.counted("objstore_get_bytes") > size_bytes_, true) << "heads come on top";
}

TEST_F(StepFetcherTest, FromTheMiddleOfAPackOnlyTheRestIsHandedOut) {
  world_.producer().append_small(1, 4);
  fetcher();
  EXPECT_EQ(numbers(must_fetch(Step(2))), (std::vector<std::uint64_t>{2, 3}));
  const std::uint64_t whole = size_bytes_;
  EXPECT_EQ(numbers(must_fetch(Step(3))), (std::vector<std::uint64_t>{3}));
  EXPECT_LT(size_bytes_, whole) << "the last one is read alone";
}

TEST_F(StepFetcherTest, ALargeObjectsRowsCostAGetOnce) {
  world_.producer().append_small(1, 2, 65);
  ASSERT_TRUE(world_.entry_of(Step(0)).run_table.empty());
  fetcher({.rank = HdpRank(64)});
  EXPECT_THAT(must_fetch(Step(0)).steps, SizeIs(2));
  EXPECT_EQ(size_bytes_, world_.entry_of(Step(0)).size_bytes / 65) << "an estimate";
  EXPECT_EQ(world_.data_gets(), 2U);
  EXPECT_THAT(must_fetch(Step(0)).steps, SizeIs(2));
  EXPECT_EQ(world_.data_gets(), 3U);
}

TEST_F(StepFetcherTest, SkippedStepsAreNeverRead) {
  world_.producer().append_small(2, 3);
  world_.damage(Step(1), HdpRank(0));
  fetcher({.skipped = {Step(1), Step(5), Step(6)}});
  EXPECT_EQ(fetcher_->after_skipped(Step(0)), Step(0));
  EXPECT_EQ(fetcher_->after_skipped(Step(1)), Step(2));
  EXPECT_EQ(fetcher_->after_skipped(Step(5)), Step(7));
  EXPECT_EQ(numbers(must_fetch(Step(0))), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(numbers(must_fetch(Step(2))), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(numbers(must_fetch(Step(3))), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(world_.counted("store_batch_rereads"), 0U);
}

TEST_F(StepFetcherTest, DamageStopsNobodyBeforeItsOwnStep) {
  world_.producer().append_small(1, 3);
  world_.damage(Step(1), HdpRank(0));
  fetcher();
  EXPECT_EQ(numbers(must_fetch(Step(0))), (std::vector<std::uint64_t>{0}));
  EXPECT_TRUE(is_error(fetch(Step(1)).status(), ErrorKind::kCorruption,
                       {"step 1 of rank 0", "d/", "commit a SKIP", "min_slot"}));
  EXPECT_EQ(numbers(must_fetch(Step(2))), (std::vector<std::uint64_t>{2}));
  fetcher({.rank = HdpRank(1)});
  EXPECT_THAT(must_fetch(Step(0)).steps, SizeIs(3)) << "another rank is not touched";
}

TEST_F(StepFetcherTest, NoSkipIsAdvisedAgainstADamagedManifestSegment) {
  world_.producer().append_small(2);
  store::StoredHead head = *world_.newest();
  head.head.tail.clear();
  store::SegmentRef gone;
  gone.slot = store::Slot(2);
  gone.size_bytes = 100;
  head.head.segments = {{gone}};
  fetcher();
  const Status lost =
      fetch(Step(1), std::make_shared<const store::StoredHead>(std::move(head))).status();
  EXPECT_TRUE(
      is_error(lost, ErrorKind::kCorruption, {"step 1 of rank 0", "s/", "restore that object"}));
  EXPECT_EQ(lost.message().find("commit a SKIP"), std::string::npos) << lost.to_string();
}

TEST_F(StepFetcherTest, DamageOnTheWayIsHealedByASecondRead) {
  world_.producer().append_small(1);
  fetcher();
  world_.objects().next({.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged});
  EXPECT_THAT(must_fetch(Step(0)).steps, SizeIs(1));
  EXPECT_EQ(world_.counted("store_batch_rereads"), 1U);
}

TEST_F(StepFetcherTest, AMissingObjectIsDamageUnlessItWasTrimmed) {
  world_.producer().append_small(4);
  fetcher();
  const store::HeadPtr old = must(world_.feed().refresh({}));
  world_.trim(Step(2));
  EXPECT_TRUE(is_error(fetch(Step(1), old).status(), ErrorKind::kNotFound,
                       {"step 1 was trimmed", "begins at step 2"}));
  EXPECT_TRUE(is_error(fetch(Step(1)).status(), ErrorKind::kNotFound,
                       {"step 1 was trimmed", "begins at step 2"}));
  world_.remove_object(Step(3));
  EXPECT_TRUE(is_error(fetch(Step(3)).status(), ErrorKind::kCorruption, {"step 3", "missing"}));
  EXPECT_EQ(world_.counted("client_rereads"), 3U);
}

TEST_F(StepFetcherTest, NamesTheObjectThatIsNotTheOneMeant) {
  world_.producer().append_small(2, 2);
  const std::string key = store::data_key(world_.entry_of(Step(0)).object());
  const Bytes right = must(world_.memory().get(key, {}, {}))->bytes;
  const std::string other_key = store::data_key(world_.entry_of(Step(2)).object());
  const Bytes other = must(world_.memory().get(other_key, {}, {}))->bytes;
  Bytes longer = right;
  longer.push_back(std::byte{0});
  const Bytes shorter(right.begin(), right.end() - 1);
  const Bytes half(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(right.size() / 2));
  Bytes zeros(right.size());
  for (const Bytes& spoiled : {Bytes(), half, shorter, longer, other, zeros}) {
    static_cast<void>(must(
        objstore::put_bytes(world_.memory(), key, spoiled, objstore::PutCondition::none(), {})));
    for (const PlanStep& plan_step : {PlanStep(), plan_for(3)}) {
      fetcher({.plan_step = plan_step});
      EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kCorruption, {"step 0", key}))
          << spoiled.size() << " bytes";
    }
  }
}

TEST_F(StepFetcherTest, RefusesStepsForAnotherNumberOfRanks) {
  world_.producer().append_small(1, 1, 4);
  fetcher({.rank = HdpRank(1), .ranks = 2});
  EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kInvalid,
                       {"step 0", "4 HDP ranks", "rank 1 of 2", "plan_step"}));
  fetcher({.rank = HdpRank(4)});
  EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kInvalid, {"rank 4"}));
  EXPECT_EQ(world_.data_gets(), 0U);
}

TEST_F(StepFetcherTest, AStreamForEightRanksServesAnyNumber) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto width = seed % 2 == 0 ? store::TokenWidth::k16 : store::TokenWidth::k32;
    const TestStep steps[] = {
        make_step({.seed = 10 + seed, .ranks = 8, .samples = 9, .width = width}),
        make_step({.seed = 20 + seed, .ranks = 8, .samples = 9, .width = width}),
    };
    world_.producer().append(steps);
  }
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 16U}) {
    SCOPED_TRACE(ranks);
    for (Step step; step < Step(8); ++step) {
      std::vector<StepPtr> batches;
      for (HdpRank rank; rank.value < ranks; ++rank) {
        fetcher({.rank = rank, .ranks = ranks, .plan_step = plan_for(ranks)});
        const FetchedSteps fetched = must_fetch(step);
        ASSERT_THAT(fetched.steps, SizeIs(1));
        EXPECT_LE(fetched.held_bytes + fetched.steps[0]->fetched_bytes, size_bytes_);
        batches.push_back(fetched.steps[0]);
      }
      const TestStep& expected = world_.step(step.value);
      EXPECT_TRUE(
          hold_step(batches, expected, random_layout(expected.plan.samples, ranks, step.value)));
    }
  }
}

TEST_F(StepFetcherTest, TheIndexIsReadOncePerPack) {
  world_.producer().append_small(1, 3, 2);
  fetcher({.rank = HdpRank(0), .plan_step = plan_for(1)});
  static_cast<void>(must_fetch(Step(0)));
  const std::size_t first = world_.data_gets();
  static_cast<void>(must_fetch(Step(1)));
  EXPECT_EQ(world_.data_gets(), first + 1) << "small steps lie close to each other";
  static_cast<void>(must_fetch(Step(2)));
  EXPECT_EQ(world_.data_gets(), first + 2);
  EXPECT_EQ(first, 3U);
}

TEST_F(StepFetcherTest, SaysWhatIsWrongWithANewPlan) {
  world_.producer().append_small(1, 1, 2);
  fetcher({.plan_step = [](const StoredStep&) -> Result<model::StepPlan> {
    return Status::exhausted("no room for it");
  }});
  EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kExhausted,
                       {"planning step 0 anew", "no room for it"}));
  fetcher({.plan_step = [](const StoredStep& stored) -> Result<model::StepPlan> {
    auto samples = stored.indexed.plan.samples;
    samples.pop_back();
    return random_layout(samples, 1, 1);
  }});
  EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kInvalid,
                       {"planning step 0 anew", "3 samples", "4"}));
  fetcher({.ranks = 5, .plan_step = plan_for(3)});
  EXPECT_TRUE(is_error(fetch(Step(0)).status(), ErrorKind::kInvalid, {"3 HDP ranks", "of 5"}));
}

model::Topology topology(std::string_view axes) {
  return must(model::Topology::parse(axes));
}

TEST_F(StepFetcherTest, StepsForTheJobsTopologyAreReadAsTheyAreStored) {
  world_.producer().append_small(1, 1, 2);
  must(store::set_topology(world_.other(), topology("pp=2 dp=2"), {}));
  world_.producer().append_small(1, 1, 2);
  const PlanStep refuse = [](const StoredStep&) -> Result<model::StepPlan> {
    return Status::exhausted("planned anew");
  };
  const auto is_planned_anew = [&](Step step, std::string_view axes) {
    fetcher({.plan_step = refuse, .topology = topology(axes)});
    return fetch(step).is(ErrorKind::kExhausted);
  };
  EXPECT_FALSE(is_planned_anew(Step(0), "dp=2"));
  EXPECT_FALSE(is_planned_anew(Step(0), "cp=2")) << "nobody said what these two ranks are";
  EXPECT_TRUE(is_planned_anew(Step(0), "dp=3"));
  EXPECT_FALSE(is_planned_anew(Step(1), "dp=2 tp=4"));
  EXPECT_TRUE(is_planned_anew(Step(1), "cp=2"));
  fetcher({.plan_step = refuse});
  EXPECT_TRUE(fetch(Step(1)).is(ErrorKind::kExhausted)) << "a job that does not say";
}

TEST(SameLayout, IsThatOfTheHdpRanks) {
  EXPECT_TRUE(same_layout(topology("pp=4 dp=2 cp=3 tp=2"), topology("dp=2 cp=3")));
  EXPECT_TRUE(same_layout(topology("dp=1"), topology("tp=8")));
  EXPECT_FALSE(same_layout(topology("dp=2 cp=3"), topology("dp=3 cp=2")));
  EXPECT_FALSE(same_layout(topology("dp=2 cp=3"), topology("cp=3 dp=2"))) << "other neighbours";
  EXPECT_FALSE(same_layout(topology("dp=4"), topology("cp=4")));
}

TEST_F(StepFetcherTest, RefusesRingsThatTheJobDoesNotRun) {
  const TestStep pack[] = {make_whole_step({.ranks = 3}), make_ring_step({.ranks = 3})};
  world_.producer().append(pack);
  fetcher({.ring_max = 1});
  EXPECT_THAT(numbers(must_fetch(Step(0))), ElementsAre(0)) << "the first harms nobody";
  EXPECT_TRUE(is_error(fetch(Step(1)).status(), ErrorKind::kInvalid,
                       {"step 1", "in this job 1 may share one"}));
  fetcher({.ring_max = 3});
  EXPECT_THAT(numbers(must_fetch(Step(0))), ElementsAre(0, 1));
  fetcher({.plan_step = plan_for(1), .ring_max = 1});
  EXPECT_TRUE(fetch(Step(1)).is_ok()) << "the rings of the new plan count";
}

TEST_F(StepFetcherTest, ADamagedPieceReachesNoOtherTopology) {
  world_.producer().append_small(1, 1, 1);
  world_.damage(Step(0), HdpRank(0));
  fetcher({.plan_step = plan_for(2)});
  std::size_t damaged = 0;
  for (HdpRank rank; rank.value < 2; ++rank) {
    fetcher({.rank = rank, .plan_step = plan_for(2)});
    const Result<FetchedSteps> fetched = fetch(Step(0));
    if (fetched.is_ok()) continue;
    EXPECT_TRUE(is_error(fetched.status(), ErrorKind::kCorruption, {"step 0", "d/"}));
    ++damaged;
  }
  EXPECT_GE(damaged, 1U);
}

}  // namespace
}  // namespace batchloom::client
