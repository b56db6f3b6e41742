// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/child_process.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "batchloom/base/real_runtime.h"

namespace batchloom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<ChildProcess> shell(const std::string& script,
                                    std::function<void(std::string_view)> on_line = {}) {
  return ChildProcess::start({.arguments = {"sh", "-c", script}, .on_line = std::move(on_line)})
      .value();
}

CallOptions within(std::chrono::milliseconds time) {
  return {.deadline = make_real_runtime()->now() + time, .stop = {}};
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(ChildProcess, WhatIsWrittenCanComeBackWhateverItsSize) {
  const auto child = shell("exec cat >&0");
  const std::string sent(3 << 20, 'x');
  // More than pipes hold: it is written and read in turns.
  for (std::size_t at = 0; at < sent.size(); at += 4096) {
    ASSERT_TRUE(child->write(as_bytes(std::string_view(sent).substr(at, 4096)), {}).is_ok());
    Bytes back(4096);
    ASSERT_TRUE(child->read(back, {}).is_ok());
    ASSERT_EQ(as_text(back), std::string_view(sent).substr(at, 4096));
  }
}

TEST(ChildProcess, WhatItPrintsIsKeptApart) {
  std::vector<std::string> lines;
  const auto child = shell("echo out; echo err >&2; printf answer >&0; printf cut",
                           [&](std::string_view line) { lines.emplace_back(line); });
  Bytes answer(6);
  ASSERT_TRUE(child->read(answer, {}).is_ok());
  EXPECT_EQ(as_text(answer), "answer");
  EXPECT_TRUE(child->read(answer, {}).is(ErrorKind::kUnavailable));
  EXPECT_THAT(lines, ElementsAre("out", "err"));
  EXPECT_EQ(child->last_lines(), "out\nerr\ncut");
}

TEST(ChildProcess, AProgramThatPrintsMuchBeforeItReadsIsNoDeadlock) {
  const auto child = shell("head -c 3000000 /dev/zero | tr '\\0' '\\n'; exec cat >&0");
  const Bytes sent(1 << 20);
  ASSERT_TRUE(child->write(ByteSpan(sent).first(1000), within(std::chrono::minutes(1))).is_ok());
  Bytes back(1000);
  EXPECT_TRUE(child->read(back, within(std::chrono::minutes(1))).is_ok());
}

TEST(ChildProcess, SaysHowAProgramEnded) {
  Bytes byte(1);
  EXPECT_EQ(shell("exit 3")->read(byte, {}).to_string(), "unavailable: it ended with status 3");
  const auto killed = shell("kill -9 $$");
  EXPECT_EQ(killed->read(byte, {}).to_string(), "unavailable: it was killed by SIGKILL");
  EXPECT_TRUE(killed->write(byte, {}).is(ErrorKind::kUnavailable));
  const auto deaf = shell("exec <&-; exec sleep 600");
  EXPECT_EQ(deaf->read(byte, {}).to_string(), "unavailable: it was killed by SIGKILL");
}

TEST(ChildProcess, WritingToOneThatHasEndedIsNoSignal) {
  const auto child = shell("exit 0");
  Status status;
  const Bytes bytes(1 << 20);
  while (status.is_ok()) status = child->write(bytes, {});
  EXPECT_EQ(status.to_string(), "unavailable: it ended with status 0");
}

TEST(ChildProcess, OneThatHangsEndsByTheDeadlineAndByTheStop) {
  const auto child = shell("exec sleep 600");
  Bytes byte(1);
  EXPECT_EQ(child->read(byte, within(std::chrono::milliseconds(20))).to_string(),
            "unavailable: the deadline passed");
  EXPECT_TRUE(child->write(Bytes(4 << 20), within(std::chrono::milliseconds(20)))
                  .is(ErrorKind::kUnavailable));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(
      child->read(byte, {.deadline = kNever, .stop = stop.get_token()}).is(ErrorKind::kCancelled));
}

TEST(ChildProcess, WhatCannotBeRunIsNamed) {
  const auto gone = ChildProcess::start({.arguments = {"/gone/program"}});
  EXPECT_EQ(gone.status().to_string(),
            "invalid: /gone/program: cannot run it: No such file or directory");
  EXPECT_TRUE(ChildProcess::start({.arguments = {"/"}}).is(ErrorKind::kInvalid));
}

TEST(ChildProcess, LeavesNeitherProcessesNorDescriptors) {
  const std::size_t before = open_files();
  int id = 0;
  for (int i = 0; i < 20; ++i) {
    const auto child = shell("exec sleep 600");
    id = child->id();
    EXPECT_EQ(kill(id, 0), 0);
    static_cast<void>(ChildProcess::start({.arguments = {"/gone/program"}}));
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH) << "not even as one that nobody waited for";
}

TEST(ChildProcess, HasItsOwnThreeDescriptorsAndNoBlockedSignal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // Another program would get these.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
  const auto child = shell(
      "files=$(ls /proc/self/fd | wc -l); signals=$(grep SigBlk /proc/self/status); "
      "printf '%s' \"$files$signals\" >&0");
  Bytes told(1 + 24);
  EXPECT_TRUE(child->read(told, {}).is_ok());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Of ls: its three, and the folder that it lists.
  EXPECT_EQ(as_text(told), "4SigBlk:\t0000000000000000");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace batchloom
