// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace batchloom {
namespace {

TEST(Log, WritesLinesToStderrOnly) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  log_info("two {} braces are text");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find("two {} braces are text\n"), std::string::npos) << line;
  EXPECT_NE(line.find("info"), std::string::npos) << line;
}

TEST(Log, DropsLinesBelowTheLevel) {
  testing::internal::CaptureStderr();
  log_debug("unseen by default");
  set_log_level(LogLevel::kError);
  log_warning("unseen warning");
  log_error("seen error");
  set_log_level(LogLevel::kOff);
  log_error("unseen error");
  set_log_level(LogLevel::kInfo);
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_NE(lines.find("seen error"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("unseen"), std::string::npos) << lines;
}

}  // namespace
}  // namespace batchloom
