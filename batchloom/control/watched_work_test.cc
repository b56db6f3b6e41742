// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/watched_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/base/sim_runtime.h"

namespace batchloom::control {
namespace {

using sources::FileCalls;
using sources::FileCallStage;
using std::chrono::seconds;
using testing::HasSubstr;

/// Work that a test says, watched in a simulated world: logged after 8 s, an error after 40.
class WatchedWorkTest : public testing::Test {
 protected:
  WatchedWorkTest() {
    config_.sources.resize(2);
    config_.sources[0].name = "docs";
    config_.sources[0].paths = {"docs/0.jsonl", "docs/1.jsonl"};
    config_.sources[1].name = "ids";
    config_.sources[1].format = SourceFormat::kMegatron;
    config_.sources[1].paths = {"ids/a.idx"};
  }

  /// What waiting came to; `said_` is the log.
  Status watch(const std::function<void()>& work, const CallOptions& call = {}) {
    Status waited;
    testing::internal::CaptureStderr();
    process_.start("main", [&] {
      WatchedWork watched(process_, config_, calls_,
                          {.slow_after = seconds(8), .wait_max = seconds(40)}, work);
      waited = watched.wait(call);
      waited_until_ = process_.now();
    });
    const Status ended = world_.run();
    EXPECT_TRUE(ended.is_ok()) << ended.to_string();
    said_ = testing::internal::GetCapturedStderr();
    return waited;
  }
  void call_for(FileCallStage stage, const std::string& path, Duration time) {
    const FileCalls::Mark mark(&calls_, stage, path);
    EXPECT_TRUE(process_.sleep_until({.deadline = process_.now() + time}).is_ok());
  }

  SimWorld world_{7};
  SimProcess& process_ = world_.add_process("run");
  PipelineConfig config_;
  FileCalls calls_;
  Time waited_until_ = {};
  std::string said_;
};

TEST_F(WatchedWorkTest, ManyCallsAreNotSlow) {
  EXPECT_TRUE(watch([&] {
                for (int i = 0; i < 30; ++i) {
                  call_for(FileCallStage::kRead, "docs/1.jsonl", seconds(5));
                }
              }).is_ok());
  EXPECT_EQ(waited_until_.time_since_epoch(), seconds(150));
  EXPECT_EQ(said_, "");
}

TEST_F(WatchedWorkTest, AFileThatHangsIsLoggedOnceAndInTheEndAnErrorThatNamesIt) {
  const Status late =
      watch([&] { call_for(FileCallStage::kOpenIndex, "docs/1.jsonl", seconds(200)); });
  EXPECT_TRUE(late.is(ErrorKind::kUnavailable));
  EXPECT_THAT(late.message(), HasSubstr("source 'docs': opening the index of docs/1.jsonl: for 4"));
  EXPECT_THAT(late.message(), HasSubstr("no more than 40.0 s is waited; is its storage there?"));
  EXPECT_LE(waited_until_.time_since_epoch(), seconds(44)) << "who waits does not hang";
  EXPECT_THAT(said_, HasSubstr("source 'docs': opening the index of docs/1.jsonl: for 8.0 s now"));
  EXPECT_EQ(said_.find("s now"), said_.rfind("s now")) << said_;
  EXPECT_THAT(said_, HasSubstr(late.message()));
}

TEST_F(WatchedWorkTest, AFileOfAPairIsOfItsSource) {
  watch([&] { call_for(FileCallStage::kRead, "ids/a.bin", seconds(20)); }).is_ok();
  EXPECT_THAT(said_, HasSubstr("source 'ids': reading ids/a.bin: for 8.0 s now"));
}

TEST_F(WatchedWorkTest, AStopEndsTheWaiting) {
  std::stop_source stop;
  const Status stopped = watch(
      [&] {
        stop.request_stop();
        call_for(FileCallStage::kLook, "docs/0.jsonl", seconds(20));
      },
      {.deadline = kNever, .stop = stop.get_token()});
  EXPECT_TRUE(stopped.is(ErrorKind::kCancelled));
  EXPECT_LT(waited_until_.time_since_epoch(), seconds(1));
}

}  // namespace
}  // namespace batchloom::control
