// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/trainer.h"

#include <gtest/gtest.h>

namespace batchloom::simulator {
namespace {

using store::Pin;
using store::Slot;
using store::Step;

Pin pin(const std::string& id, std::uint64_t step) {
  return {.name = {.group = "g", .id = id, .nonce = {}}, .step = Step(step)};
}

Tally tally(std::uint64_t step) {
  Tally tally;
  tally.next = Step(step);
  return tally;
}

Trainer make_trainer(std::size_t kept) {
  TrainerShape shape;
  shape.consumers = 2;
  shape.checkpoints_kept = kept;
  return Trainer("g", shape);
}

TEST(Trainer, BeginsAtACheckpointOfAllRanks) {
  Trainer trainer = make_trainer(1);
  EXPECT_FALSE(trainer.has_begun());
  trainer.begin(pin("c0", 3));
  EXPECT_TRUE(trainer.has_begun());
  EXPECT_EQ(trainer.usable_checkpoints(), std::vector{pin("c0", 3)});
  EXPECT_EQ(trainer.saved(1).at(Step(3)).base, Step(3));
  EXPECT_TRUE(trainer.has_checkpoint("c0"));
}

TEST(Trainer, ACheckpointCanBeUsedOnceAllRanksHaveSavedTheirPart) {
  Trainer trainer = make_trainer(1);
  trainer.begin(pin("c0", 0));
  trainer.add_checkpoint(pin("c1", 4));
  trainer.save(0, tally(4));
  EXPECT_EQ(trainer.usable_checkpoints().size(), 1U);
  EXPECT_EQ(trainer.drop_oldest(), std::nullopt) << "it is the only one of any use";
  trainer.save(1, tally(4));
  EXPECT_EQ(trainer.usable_checkpoints().size(), 2U);
  EXPECT_EQ(trainer.drop_oldest(), pin("c0", 0));
  EXPECT_EQ(trainer.drop_oldest(), std::nullopt);
  EXPECT_FALSE(trainer.has_checkpoint("c0"));
}

TEST(Trainer, KeepsAsManyCheckpointsAsItShould) {
  Trainer trainer = make_trainer(2);
  trainer.begin(pin("c0", 0));
  for (const std::uint64_t step : {4U, 8U}) {
    EXPECT_EQ(trainer.drop_oldest(), std::nullopt);
    trainer.add_checkpoint(pin("c", step));
    for (const std::size_t rank : {0U, 1U}) trainer.save(rank, tally(step));
  }
  EXPECT_EQ(trainer.drop_oldest(), pin("c0", 0));
  EXPECT_EQ(trainer.drop_oldest(), std::nullopt);
}

TEST(Trainer, IsFinishedWithItsLastRank) {
  Trainer trainer = make_trainer(1);
  trainer.finish(1);
  EXPECT_TRUE(trainer.is_finished(1));
  EXPECT_FALSE(trainer.is_finished(0));
  EXPECT_FALSE(trainer.is_finished());
  trainer.finish(0);
  EXPECT_TRUE(trainer.is_finished());
}

TEST(Trainer, ItsSlotsOnlyRise) {
  Trainer trainer = make_trainer(1);
  trainer.raise_min_slot(Slot(4));
  trainer.raise_min_slot(Slot(3));
  EXPECT_EQ(trainer.min_slot(), Slot(4));
}

}  // namespace
}  // namespace batchloom::simulator
