// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/consumer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "batchloom/client/client_world_testing.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using std::chrono::seconds;

std::unique_ptr<Consumer> open(ClientWorld& world, ConsumerOptions options = {}) {
  return must(Consumer::open(world.feed(), std::move(options), {}));
}

StepPtr next_step(Consumer& consumer) {
  StepPtr step = must(consumer.next({}));
  EXPECT_NE(step, nullptr) << "the end";
  return step;
}

void expect_step(Consumer& consumer, std::uint64_t number) {
  const StepPtr step = next_step(consumer);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->step, Step(number));
  EXPECT_EQ(consumer.cursor(), Step(number + 1));
}

/// What two deliveries of a step must have in common: all of it but where it lies.
void expect_same(const StepBatch& one, const StepBatch& other) {
  EXPECT_EQ(one.step, other.step);
  EXPECT_EQ(one.plan_digest, other.plan_digest);
  EXPECT_EQ(one.events, other.events);
  ASSERT_EQ(one.micro_batches.size(), other.micro_batches.size());
  for (std::size_t i = 0; i < one.micro_batches.size(); ++i) {
    const auto same = [](const store::RunPiece& a, const store::RunPiece& b) {
      return a.sample == b.sample && a.lo == b.lo && a.hi == b.hi && a.crc == b.crc &&
             std::ranges::equal(a.tokens, b.tokens) && a.labels == b.labels;
    };
    EXPECT_TRUE(
        std::ranges::equal(one.micro_batches[i].pieces, other.micro_batches[i].pieces, same));
  }
}

TEST(Consumer, BeginsWhereItIsToldTo) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    const auto consumer = open(world, {.start = Step(3), .samples_hash = 77});
    EXPECT_EQ(consumer->cursor(), Step(3));
    EXPECT_EQ(consumer->state(), (ConsumerState{world.stream().uuid(), Step(3), 77}));
    expect_step(*consumer, 3);
    expect_step(*consumer, 4);
    EXPECT_TRUE(consumer->next(world.within(seconds(1))).is(ErrorKind::kUnavailable));
    EXPECT_EQ(consumer->cursor(), Step(5));
  });
}

TEST(Consumer, RefusesATrimmedStart) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    world.trim(Step(3));
    const auto refused = Consumer::open(world.feed(), {.start = Step(2)}, {});
    EXPECT_TRUE(is_error(refused.status(), ErrorKind::kNotFound,
                         {"step 2 was trimmed", "begins at step 3"}));
    expect_step(*open(world, {.start = Step(3)}), 3);
  });
}

TEST(Consumer, RefusesARankThatThereIsNot) {
  on_any_schedule(
      [](ClientWorld& world) {
        const ConsumerOptions options{.rank = HdpRank(4), .ranks = 4};
        EXPECT_TRUE(is_error(Consumer::open(world.feed(), options, {}).status(),
                             ErrorKind::kInvalid, {"rank 4", "4 HDP ranks"}));
        EXPECT_TRUE(world.objects().requests().empty());
      },
      1);
}

TEST(Consumer, RefusesToWaitBeyondTheEndOfAnEndedStream) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2);
    const auto open_at = [&](std::uint64_t start) {
      return Consumer::open(world.feed(), {.start = Step(start)}, {});
    };
    EXPECT_TRUE(open_at(3).is_ok()) << "it may come";
    EXPECT_TRUE(store::end_stream(world.stream(), {}).is_ok());
    EXPECT_TRUE(open_at(2).is_ok()) << "the end itself";
    EXPECT_TRUE(is_error(open_at(3).status(), ErrorKind::kInvalid,
                         {"step 3 will not come", "has ended before step 2"}));
  });
}

TEST(Consumer, WaitsBeyondTheEndOrRefuses) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2);
    const auto open_at = [&](std::uint64_t start) {
      return Consumer::open(world.feed(), {.start = Step(start), .beyond_end = BeyondEnd::kRefuse},
                            {});
    };
    EXPECT_TRUE(is_error(open_at(3).status(), ErrorKind::kInvalid,
                         {"step 3 is not there", "ends before step 2"}));
    EXPECT_TRUE(open_at(2).is_ok()) << "the next one to be committed";
    const auto consumer = open(world, {.start = Step(3)});
    EXPECT_TRUE(consumer->next(world.within(seconds(1))).is(ErrorKind::kUnavailable));
    world.producer().append_small(2);
    expect_step(*consumer, 3);
  });
}

TEST(Consumer, OpensWithAHeadOfTheSlotOrANewerOne) {
  on_any_schedule([](ClientWorld& world) {
    const Slot next = world.newest()->head.slot + 1;
    const ConsumerOptions options{.min_slot = next};
    EXPECT_TRUE(is_error(Consumer::open(world.feed(), options, world.within(seconds(1))).status(),
                         ErrorKind::kUnavailable, {"no slot 3 yet"}));
    const auto producer = world.start("producer", [&](const std::stop_token&) {
      world.pass(seconds(1));
      world.producer().append_small(2);
    });
    const auto consumer = open(world, options);
    EXPECT_EQ(consumer->opened_with(), next);
    expect_step(*consumer, 0);
    producer->join();
  });
}

TEST(Consumer, HashesTheSamplesOfWhatItDelivered) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2, 3);
    const auto consumer = open(world);
    std::uint64_t hash = 0;
    for (std::uint64_t number = 0; number < 6; ++number) {
      const StepPtr step = next_step(*consumer);
      const auto digest = store::samples_digest(world.step(number).plan.samples);
      EXPECT_EQ(step->samples_digest, digest);
      hash = next_samples_hash(hash, digest);
      EXPECT_EQ(consumer->state(), (ConsumerState{world.stream().uuid(), Step(number + 1), hash,
                                                  DeliveredStep{Step(number), digest}}));
    }
    // Another rank, and one that was interrupted, come to the same.
    const auto other = open(world, {.rank = HdpRank(1)});
    for (int i = 0; i < 4; ++i) static_cast<void>(next_step(*other));
    const ConsumerState saved = other->state();
    const auto resumed = open(
        world, {.rank = HdpRank(1), .start = saved.next_step, .samples_hash = saved.samples_hash});
    for (int i = 0; i < 2; ++i) static_cast<void>(next_step(*resumed));
    EXPECT_EQ(resumed->state(), consumer->state());
  });
}

TEST(Consumer, SeekingBackAndForthGivesTheSameBatches) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(3, 2);
    const auto consumer = open(world);
    std::vector<StepPtr> first;
    std::vector<ConsumerState> states = {consumer->state()};
    for (int i = 0; i < 6; ++i) {
      first.push_back(next_step(*consumer));
      states.push_back(consumer->state());
    }
    for (const std::size_t to : {3U, 0U, 5U, 2U}) {
      ASSERT_TRUE(consumer->seek(states[to], {}).is_ok());
      EXPECT_EQ(consumer->state(), states[to]);
      const StepPtr again = next_step(*consumer);
      expect_same(*again, *first[to]);
      EXPECT_EQ(consumer->state(), states[to + 1]);
    }
    ConsumerState foreign = states[1];
    foreign.stream.bytes[0] ^= std::byte{1};
    EXPECT_TRUE(is_error(consumer->seek(foreign, {}), ErrorKind::kInvalid,
                         {foreign.stream.to_string(), world.stream().uuid().to_string()}));
    EXPECT_EQ(consumer->state(), states[3]) << "where it was";
  });
}

TEST(Consumer, AllRanksTogetherGetWhatWasStored) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(4, 2, 3);
        for (HdpRank rank; rank.value < 3; ++rank) {
          const auto consumer = open(world, {.rank = rank, .ranks = 3});
          for (std::uint64_t number = 0; number < 8; ++number) expect_step(*consumer, number);
        }
        EXPECT_EQ(world.counted("client_delivered_bytes"), world.producer().payload_bytes());
        EXPECT_GT(world.counted("client_fetched_bytes"), world.producer().payload_bytes());
        EXPECT_LT(world.counted("client_fetched_bytes"), world.counted("objstore_get_bytes"));
      },
      5);
}

TEST(Consumer, ASkipIsTakenFromTheHeadItOpenedWithAlone) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    world.damage(Step(2), HdpRank(0));
    const auto damaged = open(world);
    const auto other = open(world, {.rank = HdpRank(1)});
    expect_step(*damaged, 0);
    expect_step(*damaged, 1);
    EXPECT_TRUE(is_error(damaged->next({}).status(), ErrorKind::kCorruption, {"step 2"}));
    EXPECT_EQ(damaged->cursor(), Step(2));
    const Slot slot = must(store::skip_step(world.other(), Step(2), {})).head->head.slot;
    EXPECT_TRUE(damaged->next({}).is(ErrorKind::kCorruption));
    ASSERT_TRUE(damaged->seek(damaged->state(), {}).is_ok());
    EXPECT_TRUE(damaged->next({}).is(ErrorKind::kCorruption));
    for (std::uint64_t number = 0; number < 3; ++number) expect_step(*other, number);

    static_cast<void>(must(store::skip_step(world.other(), Step(3), {})));
    for (HdpRank rank; rank.value < 2; ++rank) {
      const auto reopened = open(world, {.rank = rank, .start = Step(1), .min_slot = slot});
      EXPECT_EQ(reopened->opened_with(), slot);
      expect_step(*reopened, 1);
      expect_step(*reopened, 3);  // The other SKIP is of a later head.
      expect_step(*reopened, 4);
      ASSERT_TRUE(
          reopened->seek({world.stream().uuid(), Step(2), reopened->state().samples_hash}, {})
              .is_ok());
      expect_step(*reopened, 3);
    }
    const auto newest = open(world, {.start = Step(1)});
    expect_step(*newest, 1);
    expect_step(*newest, 4);
  });
}

TEST(Consumer, AHeadThatIsGoneIsReplacedOnlyWhereTheSkipsAreTheSame) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(5);
        const Slot slot = world.newest()->head.slot;
        const Slot newest = must(store::skip_step(world.other(), Step(2), {})).head->head.slot;
        const auto open_at = [&](std::uint64_t start, Slot min_slot) {
          return Consumer::open(world.feed(), {.start = Step(start), .min_slot = min_slot}, {});
        };
        expect_step(*must(open_at(2, slot)), 2);
        const std::string key = store::manifest_key(slot);
        static_cast<void>(must(world.memory().remove(std::span(&key, 1), {})));
        for (const std::uint64_t start : {0U, 2U}) {
          EXPECT_TRUE(is_error(open_at(start, slot).status(), ErrorKind::kConflict,
                               {fmt::format("slot {} is gone", slot.value), "skips step 2",
                                fmt::format("all ranks again with min_slot = {}", newest.value)}));
        }
        EXPECT_EQ(must(open_at(3, slot))->opened_with(), newest) << "nothing is left to pass over";
        expect_step(*must(open_at(2, newest)), 3);
        expect_step(*must(open_at(2, Slot())), 3);
      },
      5);
}

TEST(Consumer, SkippedStepsDoNotCountForTheHash) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(3);
        static_cast<void>(must(store::skip_step(world.other(), Step(1), {})));
        const auto consumer = open(world);
        expect_step(*consumer, 0);
        EXPECT_EQ(consumer->cursor(), Step(1));
        expect_step(*consumer, 2);
        std::uint64_t hash = 0;
        for (const std::uint64_t number : {0U, 2U}) {
          hash = next_samples_hash(hash, store::samples_digest(world.step(number).plan.samples));
        }
        EXPECT_EQ(consumer->state().samples_hash, hash);
      },
      5);
}

TEST(Consumer, TheEndIsNullAndReadingGoesOnAfterAReopen) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    const auto beyond = open(world, {.start = Step(5)});
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    const auto consumer = open(world);
    expect_step(*consumer, 0);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(must(consumer->next({})), nullptr);
      EXPECT_EQ(must(beyond->next({})), nullptr);
    }
    EXPECT_EQ(consumer->cursor(), Step(1));
    ASSERT_TRUE(store::reopen_stream(world.other(), {}).is_ok());
    world.producer().append_small(1);
    expect_step(*consumer, 1);
  });
}

TEST(Consumer, ATrimmedStepIsAnErrorThatNamesItself) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(6);
    const auto consumer = open(world, {.prefetch_bytes = 0});
    expect_step(*consumer, 0);
    world.trim(Step(4));
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(is_error(consumer->next({}).status(), ErrorKind::kNotFound,
                           {"step 1 was trimmed", "begins at step 4"}));
      EXPECT_EQ(consumer->cursor(), Step(1));
    }
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(4), 0}, {}).is_ok());
    expect_step(*consumer, 4);
    expect_step(*consumer, 5);
  });
}

TEST(Consumer, ManyShareTheirPolls) {
  on_any_schedule([](ClientWorld& world) {
    std::vector<std::unique_ptr<Consumer>> consumers;
    for (int i = 0; i < 6; ++i) consumers.push_back(open(world));
    const std::uint64_t before = world.counted("client_polls");
    std::vector<std::unique_ptr<Task>> trainers;
    for (const auto& consumer : consumers) {
      trainers.push_back(world.start("trainer", [&consumer](const std::stop_token&) {
        EXPECT_TRUE(consumer->next({}).is_ok());
      }));
    }
    world.pass(seconds(20));
    world.producer().append_small(1);
    for (const auto& trainer : trainers) trainer->join();
    // One alone polls 6 times in 3.2 s, and every 2 s from then on.
    EXPECT_LE(world.counted("client_polls"), before + 20);
  });
}

/// One consumer per rank of `ranks` reads the whole stream, laid out anew; their batches of each
/// step must hold what was stored, each token once. Returns what all of them end with.
ConsumerState read_laid_out_for(ClientWorld& world, std::uint32_t ranks) {
  const PlanStep plan_step = [ranks](const StoredStep& stored) -> Result<model::StepPlan> {
    return random_layout(stored.indexed.plan.samples, ranks, stored.step.value);
  };
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (HdpRank rank; rank.value < ranks; ++rank) {
    consumers.push_back(open(world, {.rank = rank, .ranks = ranks, .plan_step = plan_step}));
  }
  for (std::uint64_t number = 0; number < world.producer().steps().size(); ++number) {
    std::vector<StepPtr> batches;
    for (const auto& consumer : consumers) batches.push_back(next_step(*consumer));
    const TestStep& step = world.step(number);
    EXPECT_TRUE(hold_step(batches, step, random_layout(step.plan.samples, ranks, number)))
        << "step " << number << " for " << ranks << " ranks";
  }
  for (const auto& consumer : consumers) EXPECT_EQ(consumer->state(), consumers[0]->state());
  return consumers[0]->state();
}

TEST(Consumer, AStreamWithoutRoomIsRefusedAtOnceWhereItsStepIsThere) {
  on_any_schedule([](ClientWorld& world) {
    const PlanStep refuse = [](const StoredStep&) -> Result<model::StepPlan> {
      return Status::does_not_fit("no room");
    };
    const ConsumerOptions options{.plan_step = refuse, .report_group = "g"};
    const auto early = open(world, options);
    world.producer().append_small(1);
    const auto refused = Consumer::open(world.feed(), options, {});
    EXPECT_EQ(refused.status().error_case(), ErrorCase::kDoesNotFit);
    EXPECT_TRUE(
        is_error(refused.status(), ErrorKind::kInvalid, {"planning step 0 anew", "no room"}));
    EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
    const auto later = open(world, {.plan_step = refuse, .start = Step(1)});
    EXPECT_EQ(later->cursor(), Step(1)) << "nothing is known of it yet";
  });
}

TEST(Consumer, OtherTopologiesGetTheSameSteps) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(2, 2, 8);
        const auto planned = open(world, {.ranks = 8});
        for (int i = 0; i < 4; ++i) static_cast<void>(next_step(*planned));
        for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 16U}) {
          EXPECT_EQ(read_laid_out_for(world, ranks), planned->state()) << ranks << " ranks";
        }
      },
      5);
}

}  // namespace
}  // namespace batchloom::client
