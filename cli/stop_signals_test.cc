// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "batchloom/base/real_runtime.h"
#include "cli/command_line.h"

namespace batchloom::cli {
namespace {

TEST(EndWithin, EndsWhatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    end_within(1);
    for (;;) pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(kFailed), "something hangs");
}

TEST(StopSignals, OneEndsWhatHangsInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    const auto runtime = make_real_runtime();
    const StopSignals signals(*runtime, 1);
    kill(getpid(), SIGTERM);
    for (;;) pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(kFailed),
              "ending in good order.*\n.*something hangs");
}

}  // namespace
}  // namespace batchloom::cli
