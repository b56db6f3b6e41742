// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/faults.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace batchloom::objstore {
namespace {

FaultPlan plan(const FaultSettings& settings) {
  return FaultPlan::make(settings).value();
}

FaultSettings half_of_puts_lost(std::uint64_t seed) {
  return {.seed = seed,
          .rates = {{Fault::kLostReply, Operation::kPut, 0.3},
                    {Fault::kLateApply, Operation::kPut, 0.2}},
          .max_delay = std::chrono::milliseconds(7)};
}

/// The faults of the first `n` puts, as letters.
std::string history(const FaultPlan& plan, std::uint64_t n) {
  std::string text;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto decision = plan.decide({Operation::kPut, i});
    text += decision ? to_string(decision->fault).substr(0, 3) : "ok ";
    if (decision) text += std::to_string(decision->salt % 10);
  }
  return text;
}

TEST(Faults, HaveDistinctNamesAndAnOperation) {
  std::set<std::string_view> names;
  for (const Fault fault : kAllFaults) {
    names.insert(to_string(fault));
    EXPECT_EQ(kAllFaults[index_of(fault)], fault);
    bool applies = false;
    for (const Operation operation : kAllOperations) applies |= applies_to(fault, operation);
    EXPECT_TRUE(applies) << to_string(fault);
  }
  EXPECT_EQ(names.size(), kAllFaults.size());
  EXPECT_FALSE(applies_to(Fault::kBitFlip, Operation::kPut));
  EXPECT_FALSE(applies_to(Fault::kLateApply, Operation::kGet));
}

TEST(FaultPlan, WithoutSettingsHasNoFaults) {
  EXPECT_EQ(FaultPlan().decide({Operation::kGet, 0}), std::nullopt);
  EXPECT_EQ(history(plan({}), 4), "ok ok ok ok ");
}

TEST(FaultPlan, IsAFunctionOfSeedAndCall) {
  EXPECT_EQ(history(plan(half_of_puts_lost(1)), 500), history(plan(half_of_puts_lost(1)), 500));
  EXPECT_NE(history(plan(half_of_puts_lost(1)), 500), history(plan(half_of_puts_lost(2)), 500));
}

TEST(FaultPlan, MeetsItsProbabilities) {
  const FaultPlan faults = plan(half_of_puts_lost(3));
  int lost = 0;
  int late = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto decision = faults.decide({Operation::kPut, i});
    if (!decision) continue;
    lost += decision->fault == Fault::kLostReply;
    late += decision->fault == Fault::kLateApply;
    EXPECT_GT(decision->delay, Duration::zero());
    EXPECT_LE(decision->delay, std::chrono::milliseconds(7));
    EXPECT_EQ(faults.decide({Operation::kGet, i}), std::nullopt);
  }
  EXPECT_NEAR(lost, 3'000, 200);  // More than four standard deviations.
  EXPECT_NEAR(late, 2'000, 200);
}

TEST(FaultPlan, ProbabilityOneIsAlways) {
  const auto faults = plan({.rates = {{Fault::kBitFlip, Operation::kGet, 1.0}}});
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(faults.decide({Operation::kGet, i}));
}

TEST(FaultPlan, TheScriptNamesTheNthCall) {
  const auto faults = plan({.script = {{{Operation::kPut, 2}, Fault::kLostReply}}});
  EXPECT_EQ(faults.decide({Operation::kPut, 1}), std::nullopt);
  ASSERT_TRUE(faults.decide({Operation::kPut, 2}));
  EXPECT_EQ(faults.decide({Operation::kPut, 2})->fault, Fault::kLostReply);
  EXPECT_EQ(faults.decide({Operation::kGet, 2}), std::nullopt);
}

TEST(FaultPlan, SuppressingOneCallLeavesTheOthers) {
  FaultSettings settings = half_of_puts_lost(4);
  settings.script = {{{Operation::kPut, 0}, Fault::kLostRequest}};
  const FaultPlan all = plan(settings);
  std::uint64_t victim = 1;
  while (!all.decide({Operation::kPut, victim})) ++victim;
  settings.suppressed = {{Operation::kPut, 0}, {Operation::kPut, victim}};
  const FaultPlan some = plan(settings);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto before = all.decide({Operation::kPut, i});
    const auto after = some.decide({Operation::kPut, i});
    if (i == 0 || i == victim) {
      EXPECT_TRUE(before && !after) << i;
    } else {
      ASSERT_EQ(before.has_value(), after.has_value()) << i;
      if (before) {
        EXPECT_EQ(before->salt, after->salt);
      }
    }
  }
}

TEST(FaultPlan, RefusesWhatCannotBe) {
  const auto refused = [](const FaultSettings& settings) {
    return FaultPlan::make(settings).is(ErrorKind::kInvalid);
  };
  FaultSettings settings;
  settings.rates = {{Fault::kBitFlip, Operation::kPut, 0.1}};
  EXPECT_TRUE(refused(settings));
  settings.rates = {{Fault::kBitFlip, Operation::kGet, -0.1}};
  EXPECT_TRUE(refused(settings));
  settings.rates = {{Fault::kBitFlip, Operation::kGet, 0.6},
                    {Fault::kShortBody, Operation::kGet, 0.5}};
  EXPECT_TRUE(refused(settings));
  settings = {};
  settings.script = {{{Operation::kHead, 0}, Fault::kShortBody}};
  EXPECT_TRUE(refused(settings));
  settings = {};
  settings.max_delay = Duration::zero();
  EXPECT_TRUE(refused(settings));
}

}  // namespace
}  // namespace batchloom::objstore
