// SPDX-License-Identifier: Apache-2.0
// Consumers that read while a producer writes, under every schedule and on real threads.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/client/consumer.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using objstore::Operation;
using std::chrono::milliseconds;
using store::Answer;

constexpr std::uint32_t kRanks = 3;

/// Everything that a rank is handed until the end.
void read_to_end(Consumer& consumer, std::vector<StepPtr>& steps) {
  for (;;) {
    const Result<StepPtr> step = consumer.next({});
    ASSERT_TRUE(step.is_ok()) << step.status().to_string();
    if (*step == nullptr) return;
    steps.push_back(*step);
  }
}

void produce(ClientWorld& world, std::uint32_t objects) {
  for (std::uint32_t i = 0; i < objects; ++i) {
    world.pass(milliseconds(1 + world.runtime().random() % 60));
    world.producer().append_small(1, 1 + i % 3, kRanks);
  }
  EXPECT_TRUE(store::end_stream(world.other(), {}).is_ok());
}

/// A producer and one consumer a rank at once: every rank gets every step, once, in order, whole.
void read_while_written(ClientWorld& world, std::uint32_t objects) {
  std::array<std::vector<StepPtr>, kRanks> by_rank;
  std::vector<std::unique_ptr<Task>> trainers;
  for (HdpRank rank; rank.value < kRanks; ++rank) {
    trainers.push_back(world.runtime().spawn("trainer", [&, rank](const std::stop_token&) {
      const auto consumer = must(Consumer::open(world.feed(),
                                                {.rank = rank,
                                                 .ranks = kRanks,
                                                 .prefetch_bytes = 400 * rank.value,
                                                 .report_group = rank == HdpRank(0) ? "g" : ""},
                                                {}));
      read_to_end(*consumer, by_rank[rank.value]);
      EXPECT_TRUE(consumer->close({}).is_ok());
    }));
  }
  produce(world, objects);
  for (const auto& trainer : trainers) trainer->join();
  const auto cursor = must(store::read_live_cursor(world.other(), "g", {})).value();
  EXPECT_TRUE(cursor.closed);
  EXPECT_EQ(cursor.cursor, Step(world.producer().steps().size())) << "close() has the last word";
  for (std::size_t number = 0; number < world.producer().steps().size(); ++number) {
    std::vector<StepPtr> batches;
    for (const std::vector<StepPtr>& steps : by_rank) {
      ASSERT_EQ(steps.size(), world.producer().steps().size());
      EXPECT_EQ(steps[number]->step, Step(number));
      batches.push_back(steps[number]);
    }
    const TestStep& step = world.step(number);
    EXPECT_TRUE(hold_step(batches, step, step.plan));
  }
}

TEST(ConsumerLive, EveryRankGetsEveryStepUnderEverySchedule) {
  on_any_schedule([](ClientWorld& world) { read_while_written(world, 6); });
}

ConsumerOptions without_room(std::string group) {
  ConsumerOptions options;
  options.plan_step = [](const StoredStep&) -> Result<model::StepPlan> {
    return Status::does_not_fit("no room");
  };
  options.report_group = std::move(group);
  return options;
}

bool is_closed(ClientWorld& world, const std::string& group) {
  return must(store::read_live_cursor(world.other(), group, {})).value().closed;
}

TEST(ConsumerLive, AJobWithoutRoomHoldsUpNoProducer) {
  on_any_schedule([](ClientWorld& world) {
    const auto early = must(Consumer::open(world.feed(), without_room("g"), {}));
    EXPECT_FALSE(is_closed(world, "g"));
    world.producer().append_small(1);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
      EXPECT_TRUE(is_closed(world, "g"));
    }
    // It may go on elsewhere, and is then alive.
    EXPECT_TRUE(early->seek(early->state(), {}).is_ok());
    EXPECT_FALSE(is_closed(world, "g"));
    EXPECT_TRUE(early->close({}).is_ok());
    EXPECT_TRUE(is_closed(world, "g"));
  });
}

/// The reply to the closing is lost, whether or not it was closed: what goes on elsewhere is alive,
/// and is reported.
TEST(ConsumerLive, AJobThatGoesOnIsReportedWhateverCameOfLettingGo) {
  const QuietLog quiet;
  for (const Answer lost : {Answer::kUnavailable, Answer::kLostReply, Answer::kLostRequest}) {
    on_any_schedule([lost](ClientWorld& world) {
      ConsumerOptions options = without_room("g");
      bool has_room = false;
      options.plan_step = [&](const StoredStep& stored) -> Result<model::StepPlan> {
        if (has_room) return stored.indexed.plan;
        return Status::does_not_fit("no room");
      };
      options.report_steps = 1;
      const auto early = must(Consumer::open(world.feed(), options, {}));
      world.producer().append_small(3);
      world.objects().next(
          {.operation = Operation::kPut, .prefix = "pin/", .answer = lost, .times = 1'000});
      EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
      static_cast<void>(early->seek(early->state(), world.within(std::chrono::seconds(1))));
      world.objects().forget_script();
      has_room = true;
      EXPECT_TRUE(early->seek(early->state(), {}).is_ok());
      EXPECT_TRUE(must(early->next({})) != nullptr);
      world.pass(std::chrono::seconds(30));
      const auto cursor = must(store::read_live_cursor(world.other(), "g", {})).value();
      EXPECT_FALSE(cursor.closed);
      EXPECT_EQ(cursor.cursor, Step(1));
    });
  }
}

TEST(ConsumerLive, LettingGoKeepsTheDeadlineOfTheCall) {
  const QuietLog quiet;
  on_any_schedule([](ClientWorld& world) {
    const auto early = must(Consumer::open(world.feed(), without_room("g"), {}));
    world.producer().append_small(1);
    world.objects().next({.operation = Operation::kPut,
                          .prefix = "pin/",
                          .answer = Answer::kUnavailable,
                          .times = 1'000});
    EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
    // The refusal is known from now on, and the next call tries to let go again.
    const Time begin = world.runtime().now();
    const Status refused = early->next(world.within(std::chrono::seconds(2))).status();
    EXPECT_LT(world.runtime().now() - begin, std::chrono::seconds(6));
    EXPECT_EQ(refused.error_case(), ErrorCase::kDoesNotFit);
    world.objects().forget_script();
    EXPECT_FALSE(is_closed(world, "g"));
    EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
    EXPECT_TRUE(is_closed(world, "g"));
  });
}

TEST(ConsumerLive, WhatAnEarlierRunKeepsIsNotLetGo) {
  on_any_schedule([](ClientWorld& world) {
    must(store::open_live_cursor(world.other(), "g", Step(0), {}));
    const auto early = must(Consumer::open(world.feed(), without_room("g"), {}));
    world.producer().append_small(1);
    EXPECT_EQ(early->next({}).status().error_case(), ErrorCase::kDoesNotFit);
    EXPECT_FALSE(is_closed(world, "g"));
  });
}

TEST(ConsumerLive, ARefusalInMidRunLeavesTheCursor) {
  on_any_schedule([](ClientWorld& world) {
    ConsumerOptions options = without_room("g");
    options.plan_step = [](const StoredStep& stored) -> Result<model::StepPlan> {
      if (stored.step == Step(0)) return stored.indexed.plan;
      return Status::does_not_fit("no room");
    };
    const auto consumer = must(Consumer::open(world.feed(), options, {}));
    world.producer().append_small(2);
    EXPECT_TRUE(consumer->next({}).is_ok());
    EXPECT_EQ(consumer->next({}).status().error_case(), ErrorCase::kDoesNotFit);
    EXPECT_FALSE(is_closed(world, "g"));
  });
}

TEST(ConsumerLive, EveryRankGetsEveryStepOnRealThreads) {
  const std::unique_ptr<Runtime> runtime = make_real_runtime();
  ClientWorld world(*runtime, View::kMetered);
  read_while_written(world, 12);
}

}  // namespace
}  // namespace batchloom::client
