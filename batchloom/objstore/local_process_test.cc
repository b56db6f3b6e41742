// SPDX-License-Identifier: Apache-2.0
// Several real processes on one folder of the real disk.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"

namespace batchloom::objstore {
namespace {

constexpr int kProcesses = 8;

/// Memory that forked children share.
struct Shared {
  std::atomic<int> arrived{0};
  std::atomic<int> done{0};
  std::atomic<int> winners[32] = {};  // Of each round, a bit per process.
};

class LocalProcesses : public testing::TestWithParam<bool> {
 protected:
  LocalProcesses()
      : shared_(new(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  ~LocalProcesses() override { munmap(shared_, sizeof(Shared)); }

  std::unique_ptr<LocalStore> open() {
    return LocalStore::create({.root = scratch_.path()}, *files_, *runtime_).value();
  }

  /// Waits until `processes` processes have called this `round` times.
  void meet(int processes, int round) {
    shared_->arrived.fetch_add(1);
    while (shared_->arrived.load() < processes * round) sched_yield();
  }

  pid_t start(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    body();
    _exit(0);
  }

  void run_all(const std::function<void(int process)>& body) {
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) children.push_back(start([&, i] { body(i); }));
    for (const pid_t child : children) {
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  }

  ScratchFolder scratch_;
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  const std::unique_ptr<FileOps> files_ = make_posix_file_ops({.unnamed_temp_files = GetParam()});
  Shared* shared_;
};

TEST_P(LocalProcesses, RacingCreatorsHaveOneWinner) {
  constexpr int kRounds = 32;
  const auto key_of = [](int round) { return "m/" + std::to_string(round); };
  run_all([&](int process) {
    const auto store = open();
    const std::string content(4096, static_cast<char>('a' + process));
    for (int round = 0; round < kRounds; ++round) {
      meet(kProcesses, round + 1);
      const auto reply = put_text(*store, key_of(round), content, PutCondition::absent());
      if (reply.value().outcome == PutOutcome::kApplied) {
        shared_->winners[round].fetch_add(1 << process);
      }
    }
  });
  const auto store = open();
  for (int round = 0; round < kRounds; ++round) {
    const std::string content = get_text(*store, key_of(round)).value().value();
    const int winner = content.at(0) - 'a';
    EXPECT_EQ(content, std::string(4096, content.at(0))) << "round " << round;
    EXPECT_EQ(shared_->winners[round].load(), 1 << winner) << "round " << round;
  }
}

TEST_P(LocalProcesses, ConditionalReplacementsLoseNoUpdate) {
  constexpr int kIncrements = 12;
  ASSERT_TRUE(put_text(*open(), "gc/floor", "0").is_ok());
  run_all([&](int) {
    const auto store = open();
    meet(kProcesses, 1);
    for (int done = 0; done < kIncrements;) {
      const auto now = store->get("gc/floor", {}, {}).value();
      const int count = std::stoi(std::string(as_text(now->bytes)));
      const auto reply = put_text(*store, "gc/floor", std::to_string(count + 1),
                                  PutCondition::matches(*now->etag));
      if (reply.value().outcome == PutOutcome::kApplied) ++done;
    }
  });
  EXPECT_EQ(get_text(*open(), "gc/floor").value(), std::to_string(kProcesses * kIncrements));
}

TEST_P(LocalProcesses, AKilledWriterLeavesWholeObjectsAndNothingElse) {
  const std::string content(1 << 20, 'x');
  const pid_t writer = start([&] {
    const auto store = open();
    for (int i = 0;; ++i) {
      if (!put_text(*store, "d/" + std::to_string(i), content).is_ok()) return;
      shared_->done.fetch_add(1);
    }
  });
  while (shared_->done.load() < 5) sched_yield();
  kill(writer, SIGKILL);
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);

  const auto store = open();
  const auto objects = list_all(*store).value();
  EXPECT_GE(objects.size(), static_cast<std::size_t>(shared_->done.load()));
  for (const auto& [key, size_bytes] : objects) {
    EXPECT_EQ(get_text(*store, key).value(), content) << key;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path() + "/.tmp"));
}

INSTANTIATE_TEST_SUITE_P(TempFiles, LocalProcesses, testing::Bool(), temp_file_name);

}  // namespace
}  // namespace batchloom::objstore
