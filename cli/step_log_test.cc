// SPDX-License-Identifier: Apache-2.0
#include "cli/step_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace batchloom::cli {
namespace {

namespace fs = std::filesystem;

/// While it lives, a file may have so many bytes: a write takes those that fit, and the next fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

client::StepBatch batch_of(std::uint64_t step) {
  client::StepBatch batch;
  batch.step = store::Step(step);
  return batch;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class StepLogTest : public testing::Test {
 protected:
  ~StepLogTest() override { fs::remove(path_); }
  const fs::path path_ = testing::TempDir() + "step_log_test." + std::to_string(getpid());
};

TEST_F(StepLogTest, GoesOnWhereAnotherEnded) {
  for (const std::uint64_t step : {7u, 8u}) {
    auto log = StepLog::open(path_, false);
    ASSERT_TRUE(log.is_ok());
    ASSERT_TRUE(log->add(batch_of(step)).is_ok());
  }
  const std::string text = text_of(path_);
  EXPECT_TRUE(text.starts_with("step=7 hash=")) << text;
  EXPECT_NE(text.find("bytes=0\nstep=8 hash="), std::string::npos) << text;
}

TEST_F(StepLogTest, APartThatWasWrittenIsNoLine) {
  auto log = StepLog::open(path_, false);
  ASSERT_TRUE(log.is_ok());
  const FileSizeLimit limit(5);
  errno = EACCES;  // Of some call before.
  const Status done = log->add(batch_of(7));
  EXPECT_TRUE(done.is(ErrorKind::kExhausted)) << done.to_string();
  EXPECT_EQ(done.message().find("write " + path_.string()), 0u) << done.to_string();
  EXPECT_EQ(text_of(path_), "step=");
}

TEST_F(StepLogTest, AFullDiskIsExhausted) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  auto log = StepLog::open("/dev/full", true);
  ASSERT_TRUE(log.is_ok());
  const Status done = log->add(batch_of(0));
  EXPECT_TRUE(done.is(ErrorKind::kExhausted)) << done.to_string();
}

TEST_F(StepLogTest, SaysWhyItCannotBeOpened) {
  const Status missing = StepLog::open(path_ / "below", true).status();
  EXPECT_TRUE(missing.is(ErrorKind::kNotFound)) << missing.to_string();
  const Status folder = StepLog::open(path_.parent_path(), true).status();
  EXPECT_TRUE(folder.is(ErrorKind::kInvalid)) << folder.to_string();
}

}  // namespace
}  // namespace batchloom::cli
