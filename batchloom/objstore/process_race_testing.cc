// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/process_race_testing.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "batchloom/base/check.h"
#include "batchloom/base/real_runtime.h"

namespace batchloom::objstore {
namespace {

// A child's exit code: its PutOutcome, or one of these.
constexpr int kExitConflict = 100;
constexpr int kExitFailed = 101;

/// A one-way barrier: children say that they are ready and wait until the parent opens the gate.
class Gate {
 public:
  Gate() { BL_CHECK(pipe(ready_.data()) == 0 && pipe(go_.data()) == 0, "no pipes left"); }
  ~Gate() {
    for (int* fd : {&ready_[0], &ready_[1], &go_[0], &go_[1]}) close_once(*fd);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// In a child: blocks until open() or until the parent is gone.
  void wait() {
    close_once(go_[1]);
    char byte = 'r';
    BL_CHECK(write(ready_[1], &byte, 1) == 1, "the parent is gone");
    static_cast<void>(read(go_[0], &byte, 1));
  }

  /// In the parent: blocks until `children` are ready or have died, then lets them go.
  void open(int children) {
    close_once(ready_[1]);
    char byte = 0;
    for (int i = 0; i < children && read(ready_[0], &byte, 1) == 1; ++i) continue;
    close_once(go_[1]);
  }

 private:
  static void close_once(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  std::array<int, 2> ready_{-1, -1};
  std::array<int, 2> go_{-1, -1};
};

int child_main(TestBackend& backend, Gate& gate, const std::string& key, ByteSpan body) {
  const auto runtime = make_real_runtime();
  const auto store = backend.open_in_child(*runtime);
  gate.wait();
  if (store == nullptr) return kExitFailed;
  const auto reply = race_to_create(*store, *runtime, key, body, {});
  if (reply.is_ok()) return static_cast<int>(reply->outcome);
  if (reply.is(ErrorKind::kConflict)) return kExitConflict;
  std::fprintf(stderr, "racing process: %s\n", reply.status().to_string().c_str());
  return kExitFailed;
}

int exit_code_of(pid_t child) {
  int status = 0;
  const bool exited = waitpid(child, &status, 0) == child && WIFEXITED(status);
  return exited ? WEXITSTATUS(status) : kExitFailed;
}

}  // namespace

void race_processes(ConformanceFixture& fixture, const std::string& key, const RaceBodies& bodies) {
  std::fflush(nullptr);  // Else each child may print the parent's buffers again.
  Gate gate;
  std::vector<pid_t> children;
  for (int racer = 0; racer < bodies.racers(); ++racer) {
    const pid_t child = fork();
    BL_CHECK(child >= 0, "fork failed");
    if (child == 0) _exit(child_main(fixture.backend, gate, key, bodies.of(racer)));
    children.push_back(child);
  }
  gate.open(bodies.racers());
  std::vector<RaceEnd> ends;
  for (const pid_t child : children) {
    const int code = exit_code_of(child);
    if (code == kExitFailed) fixture.run.fail("a racing process ended without an answer");
    const bool answered = code < kExitConflict;
    ends.push_back(answered ? RaceEnd(static_cast<PutOutcome>(code)) : std::nullopt);
  }
  judge_race(fixture.run, key, bodies, ends);
}

}  // namespace batchloom::objstore
