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
using testing::StartsWith;

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
      go_on_->set();
    });
    const Status ended = world_.run();
    EXPECT_TRUE(ended.is_ok()) << ended.to_string();
    said_ = testing::internal::GetCapturedStderr();
    return waited;
  }
  /// Comes back once nobody waits any more.
  void hang_in(FileCallStage stage, const std::string& path) {
    const FileCalls::Mark mark(&calls_, stage, path);
    EXPECT_TRUE(go_on_->wait({}).is_ok());
  }

  SimWorld world_{7};
  SimProcess& process_ = world_.add_process("run");
  PipelineConfig config_;
  FileCalls calls_;
  const std::shared_ptr<Event> go_on_ = process_.make_event();
  std::string said_;
};

TEST_F(WatchedWorkTest, ManyCallsAreNotSlow) {
  EXPECT_TRUE(watch([&] {
                for (int i = 0; i < 30; ++i) {
                  const FileCalls::Mark mark(&calls_, FileCallStage::kRead, "docs/1.jsonl");
                  const Time end = process_.now() + seconds(5);
                  EXPECT_TRUE(process_.sleep_until({.deadline = end}).is_ok());
                }
              }).is_ok());
  EXPECT_GE(world_.now().time_since_epoch(), seconds(150));
  EXPECT_EQ(said_, "");
}

TEST_F(WatchedWorkTest, AFileThatHangsIsLoggedOnceAndInTheEndAnErrorThatNamesIt) {
  const Status late = watch([&] { hang_in(FileCallStage::kOpenIndex, "docs/1.jsonl"); });
  EXPECT_TRUE(late.is(ErrorKind::kUnavailable));
  const std::string what = "source 'docs': opening the index of docs/1.jsonl: for ";
  EXPECT_THAT(late.message(), StartsWith(what));
  EXPECT_THAT(late.message(), HasSubstr("no more than 40.0 s is waited; is its storage there?"));
  EXPECT_THAT(said_, HasSubstr(what + "8.0 s now"));
  EXPECT_EQ(said_.find("s now"), said_.rfind("s now")) << said_;
  EXPECT_THAT(said_, HasSubstr(late.message()));
}

TEST_F(WatchedWorkTest, AFileOfAPairIsOfItsSource) {
  const Status late = watch([&] { hang_in(FileCallStage::kRead, "ids/a.bin"); });
  EXPECT_THAT(late.message(), StartsWith("source 'ids': reading ids/a.bin: for "));
}

TEST_F(WatchedWorkTest, AStopEndsTheWaiting) {
  std::stop_source stop;
  const auto stop_and_hang = [&] {
    stop.request_stop();
    hang_in(FileCallStage::kLook, "docs/0.jsonl");
  };
  EXPECT_TRUE(watch(stop_and_hang, {.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  EXPECT_EQ(said_, "");
}

}  // namespace
}  // namespace batchloom::control
