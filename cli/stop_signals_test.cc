// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/command_line.h"

namespace batchloom::cli {
namespace {

TEST(EndWithin, EndsWhatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    end_within(1);
    for (;;) pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(kFailed), "");
}

}  // namespace
}  // namespace batchloom::cli
