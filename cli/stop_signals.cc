// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "batchloom/base/check.h"
#include "batchloom/base/log.h"
#include "cli/command_line.h"

namespace batchloom::cli {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// Blocked, they can be read from a descriptor instead.
objstore::Fd open_signals() {
  const sigset_t set = stop_signals();
  BL_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0, "the mask is a valid one");
  return objstore::Fd(signalfd(-1, &set, SFD_CLOEXEC));
}

std::atomic<void (*)()> restore_first{nullptr};

[[noreturn]] void force_end(int code) {
  if (void (*const restore)() = restore_first.load(); restore != nullptr) restore();
  std::_Exit(code);
}

/// In a signal handler: what may be called is little.
void end_now(int) {
  constexpr std::string_view kWhy =
      "batchloom: something hangs, and is not waited for any longer\n";
  [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  force_end(kFailed);
}

}  // namespace

void before_forced_end(void (*restore)()) {
  restore_first.store(restore);
}

void end_within(unsigned seconds) {
  std::signal(SIGALRM, end_now);
  alarm(seconds);
}

StopSignals::StopSignals(Runtime& runtime, unsigned ends_within_s)
    : ends_within_s_(ends_within_s), signals_(open_signals()), end_(eventfd(0, EFD_CLOEXEC)) {
  BL_CHECK(signals_.is_open() && end_.is_open(), "the process has descriptors left");
  waiter_ = runtime.spawn("signals", [this](const std::stop_token&) { wait_for_signals(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  BL_CHECK(write(end_.get(), &one, sizeof(one)) == sizeof(one), "it is written once: never full");
  waiter_ = nullptr;
  const sigset_t set = stop_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void StopSignals::wait_for_signals() {
  for (;;) {
    pollfd ready[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                      {.fd = end_.get(), .events = POLLIN, .revents = 0}};
    objstore::retry_interrupted([&] { return poll(ready, 2, -1); });
    if (ready[1].revents != 0) return;
    signalfd_siginfo signal;
    if (read(signals_.get(), &signal, sizeof(signal)) != sizeof(signal)) continue;
    const int number = static_cast<int>(signal.ssi_signo);
    if (source_.stop_requested()) force_end(128 + number);
    log_info(fmt::format("SIG{}: ending in good order; a second one ends at once",
                         sigabbrev_np(number)));
    end_within(ends_within_s_);
    source_.request_stop();
  }
}

}  // namespace batchloom::cli
