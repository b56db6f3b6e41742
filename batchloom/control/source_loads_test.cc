// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchloom::control {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr model::SourceId kFirst{0};
constexpr model::SourceId kThird{2};

Time at(int s) {
  return Time{} + seconds(s);
}

TEST(SourceLoads, WhatIsBroughtAddsUpBySource) {
  SourceLoads loads;
  EXPECT_THAT(loads.look(std::nullopt, at(0)), IsEmpty());
  loads.brought(kThird, 100, seconds(2));
  loads.brought(kFirst, 7, seconds(1));
  loads.brought(kThird, 50, seconds(3));
  EXPECT_THAT(loads.look(std::nullopt, at(0)),
              ElementsAre(SourceLoad{7, seconds(1), seconds(0)}, SourceLoad{},
                          SourceLoad{150, seconds(5), seconds(0)}));
}

TEST(SourceLoads, AWaitIsDealtOutAsItPasses) {
  SourceLoads loads;
  loads.charge(kFirst, at(5));  // Nobody waits.
  loads.begin_wait(at(10));
  loads.charge(kFirst, at(12));
  loads.charge(kThird, at(13));
  loads.end_wait(kFirst, at(17));
  loads.charge(kThird, at(30));  // Nobody waits.
  EXPECT_THAT(loads.look(kThird, at(40)),
              ElementsAre(SourceLoad{.waited = seconds(6)}, SourceLoad{},
                          SourceLoad{.waited = seconds(1)}));
}

TEST(SourceLoads, AWaitThatGoesOnCounts) {
  SourceLoads loads;
  loads.begin_wait(at(10));
  EXPECT_THAT(loads.look(kFirst, at(13)), ElementsAre(SourceLoad{.waited = seconds(3)}));
  EXPECT_THAT(loads.look(kFirst, at(14)), ElementsAre(SourceLoad{.waited = seconds(4)}));
  EXPECT_THAT(loads.look(std::nullopt, at(14)), IsEmpty());
}

TEST(SourceLoads, ACountNeverGoesBack) {
  SourceLoads loads;
  loads.begin_wait(at(10));
  loads.charge(kFirst, at(15));
  loads.charge(kThird, at(12));  // Its thread was held up after it had looked at the clock.
  loads.charge(kFirst, at(16));
  EXPECT_THAT(loads.look(kFirst, at(14)), ElementsAre(SourceLoad{.waited = seconds(6)}));
}

}  // namespace
}  // namespace batchloom::control
