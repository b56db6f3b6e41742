// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/delivered_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "batchloom/client/client_world_testing.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using store::Answer;

constexpr std::uint64_t kSeeds = 5;

std::uint64_t digest_of(ClientWorld& world, std::uint64_t step) {
  return store::samples_digest(world.step(step).plan.samples);
}

Status check(ClientWorld& world, const DeliveredStep& delivered, const CallOptions& call = {}) {
  return check_delivered(world.stream(), world.newest()->head, delivered, call);
}

std::string object_key(ClientWorld& world, std::uint64_t step) {
  return store::data_key(world.entry_of(Step(step)).object());
}

TEST(DeliveredStep, EachStepOfEachPackIsComparedWithItself) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(4, 3);
        for (std::uint64_t step = 0; step < 12; ++step) {
          const std::uint64_t digest = digest_of(world, step);
          EXPECT_TRUE(check(world, {Step(step), digest}).is_ok()) << step;
          const std::uint64_t other = digest_of(world, (step + 1) % 12);
          EXPECT_TRUE(is_error(
              check(world, {Step(step), other}), ErrorKind::kInvalid,
              {fmt::format("step {} with samples of digest {:016x}", step, other),
               fmt::format("step {} of stream {}", step, world.stream().uuid().to_string()),
               fmt::format("digest {:016x}: the stream has another history", digest)}));
        }
      },
      kSeeds);
}

TEST(DeliveredStep, StepsInSegmentsAreComparedToo) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(300);
        ASSERT_GT(world.newest()->head.tail.front().first_step, Step(7)) << "it is in a segment";
        EXPECT_TRUE(check(world, {Step(7), digest_of(world, 7)}).is_ok());
        EXPECT_TRUE(is_error(check(world, {Step(7), digest_of(world, 8)}), ErrorKind::kInvalid,
                             {"step 7", "another history"}));
      },
      1);
}

TEST(DeliveredStep, AStreamThatEndsBeforeItIsNotTheOne) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(2);
        EXPECT_TRUE(check(world, {Step(1), digest_of(world, 1)}).is_ok()) << "its last one";
        world.objects().forget_requests();
        for (const std::uint64_t step : {2U, 9U}) {
          EXPECT_TRUE(is_error(check(world, {Step(step), 1}), ErrorKind::kInvalid,
                               {fmt::format("has seen step {}", step), "ends before step 2",
                                world.stream().uuid().to_string(),
                                fmt::format("slot {}", world.newest()->head.slot.value)}));
        }
        EXPECT_TRUE(world.objects().requests().empty());
      },
      kSeeds);
}

TEST(DeliveredStep, NobodyCanTellOfTrimmedSteps) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(6);
        world.trim(Step(3));
        world.objects().forget_requests();
        EXPECT_TRUE(check(world, {Step(2), 1}).is_ok());
        EXPECT_TRUE(world.objects().requests().empty());
        EXPECT_TRUE(check(world, {Step(3), 1}).is(ErrorKind::kInvalid)) << "the first that is left";
      },
      kSeeds);
}

TEST(DeliveredStep, AStepThatIsGoneOrDamagedHoldsNothingUp) {
  const QuietLog quiet;
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(3);
        world.remove_object(Step(0));
        EXPECT_TRUE(check(world, {Step(0), 1}).is_ok());

        const std::string key = object_key(world, 1);
        Bytes bytes = must(world.memory().get(key, {}, {}))->bytes;
        // The index is the last section.
        bytes.at(bytes.size() - 9) ^= std::byte{16};
        must(objstore::put_bytes(world.memory(), key, bytes, objstore::PutCondition::none(), {}));
        EXPECT_TRUE(check(world, {Step(1), 1}).is_ok());
        EXPECT_TRUE(check(world, {Step(2), 1}).is(ErrorKind::kInvalid)) << "this one is whole";
      },
      kSeeds);
}

TEST(DeliveredStep, WhatTheStoreRefusesIsAnError) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(2);
        for (const auto& [answer, kind] : {std::pair(Answer::kUnavailable, ErrorKind::kUnavailable),
                                           std::pair(Answer::kForbidden, ErrorKind::kInvalid)}) {
          world.objects().next(
              {.operation = Operation::kGet, .prefix = "d/", .answer = answer, .times = 1'000'000});
          const Status status =
              check(world, {Step(1), digest_of(world, 1)}, world.within(std::chrono::seconds(1)));
          EXPECT_TRUE(is_error(status, kind, {object_key(world, 1)}));
          world.objects().forget_script();
        }
      },
      kSeeds);
}

}  // namespace
}  // namespace batchloom::client
