// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

namespace batchloom {
namespace {

constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::size_t kLastBytes = 2048;
/// How soon a stop token is looked at.
constexpr int kLookEveryMs = 50;
/// A program that has closed its channel is given this long to end by itself.
constexpr int kMaxEndMs = 2000;

template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

void close_if_open(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

/// Two ends, neither of which another program gets.
struct Ends {
  std::array<int, 2> fds = {-1, -1};

  ~Ends() {
    for (int& fd : fds) close_if_open(fd);
  }
  int take(std::size_t end) { return std::exchange(fds[end], -1); }
};

/// Between fork and exec: calls that are safe there, and nothing else. Does not come back.
[[noreturn]] void become(char* const* arguments, int parent, int channel, int printed, int failed) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGALRM, SIGCHLD}) signal(number, SIG_DFL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // It ended before it could be watched.
  // Above the three that are to be replaced, whatever the parent had closed.
  const int in = fcntl(channel, F_DUPFD_CLOEXEC, 3);
  const int out = fcntl(printed, F_DUPFD_CLOEXEC, 3);
  const int told = fcntl(failed, F_DUPFD_CLOEXEC, 3);
  if (in >= 0 && out >= 0 && told >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 &&
      dup2(out, 2) == 2 && close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
    execvp(arguments[0], arguments);
  }
  const int error = errno;
  static_cast<void>(::write(told, &error, sizeof(error)));
  _exit(127);
}

Status no_room(std::string_view program) {
  return Status::exhausted(fmt::format("{}: cannot start it: {}", program, std::strerror(errno)));
}

/// The time left, in milliseconds, and not more than what passes between two looks.
int wait_ms(const CallOptions& call) {
  if (call.deadline == kNever) return kLookEveryMs;
  const auto now =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call.deadline - Time(now)).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLookEveryMs));
}

std::string describe_end(int status) {
  if (WIFEXITED(status)) return fmt::format("it ended with status {}", WEXITSTATUS(status));
  return fmt::format("it was killed by SIG{}", sigabbrev_np(WTERMSIG(status)));
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(ChildCommand command) {
  const std::string program = command.arguments.at(0);
  Ends channel;
  Ends printed;
  Ends failed;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel.fds.data()) != 0 ||
      pipe2(printed.fds.data(), O_CLOEXEC) != 0 || pipe2(failed.fds.data(), O_CLOEXEC) != 0) {
    return no_room(program);
  }
  std::vector<char*> arguments;
  for (std::string& argument : command.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const int parent = getpid();
  const int id = fork();
  if (id < 0) return no_room(program);
  if (id == 0) become(arguments.data(), parent, channel.fds[1], printed.fds[1], failed.fds[1]);
  close(failed.take(1));
  int error = 0;
  const auto told = uninterrupted([&] { return ::read(failed.fds[0], &error, sizeof(error)); });
  fcntl(channel.fds[0], F_SETFL, O_NONBLOCK);
  fcntl(printed.fds[0], F_SETFL, O_NONBLOCK);
  std::unique_ptr<ChildProcess> child(
      new ChildProcess(std::move(command), id, channel.take(0), printed.take(0)));
  if (told != sizeof(error)) return child;
  return Status::invalid(fmt::format("{}: cannot run it: {}", program, std::strerror(error)));
}

ChildProcess::ChildProcess(ChildCommand command, int id, int channel, int printed)
    : command_(std::move(command)), id_(id), channel_(channel), printed_(printed) {}

ChildProcess::~ChildProcess() {
  if (!is_reaped_) {
    kill(id_, SIGKILL);
    uninterrupted([&] { return waitpid(id_, nullptr, 0); });
  }
  close_if_open(channel_);
  close_if_open(printed_);
}

Status ChildProcess::write(ByteSpan bytes, const CallOptions& call) {
  while (!bytes.empty()) {
    BL_RETURN_IF_ERROR(wait_for(POLLOUT, call));
    const auto sent =
        uninterrupted([&] { return send(channel_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN) {
      return ended();
    }
  }
  return Status::ok();
}

Status ChildProcess::read(std::span<std::byte> out, const CallOptions& call) {
  while (!out.empty()) {
    BL_RETURN_IF_ERROR(wait_for(POLLIN, call));
    const auto got = uninterrupted([&] { return recv(channel_, out.data(), out.size(), 0); });
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      return ended();
    }
  }
  return Status::ok();
}

Status ChildProcess::wait_for(short events, const CallOptions& call) {
  if (channel_ < 0) return Status::unavailable("it has ended");
  while (true) {
    if (call.stop.stop_requested()) return Status::cancelled("a stop was requested");
    const int ms = wait_ms(call);
    std::array<pollfd, 2> ready = {{{.fd = channel_, .events = events, .revents = 0},
                                    {.fd = printed_, .events = POLLIN, .revents = 0}}};
    uninterrupted([&] { return poll(ready.data(), ready.size(), ms); });
    if (ready[1].revents != 0) take_printed();
    if (ready[0].revents != 0) return Status::ok();
    if (ms == 0) return Status::unavailable("the deadline passed");
  }
}

void ChildProcess::take_printed() {
  std::array<char, 4096> buffer;
  while (printed_ >= 0) {
    const auto got = uninterrupted([&] { return ::read(printed_, buffer.data(), buffer.size()); });
    if (got < 0) break;                            // Nothing for now.
    if (got == 0) return close_if_open(printed_);  // Nobody can print any more.
    line_.append(buffer.data(), static_cast<std::size_t>(got));
    last_.append(buffer.data(), static_cast<std::size_t>(got));
    if (last_.size() > kLastBytes) last_.erase(0, last_.size() - kLastBytes);
    tell_lines();
  }
}

void ChildProcess::tell_lines() {
  const auto tell = [&](std::string_view line) {
    if (command_.on_line) command_.on_line(line);
  };
  std::string_view left = line_;
  for (std::size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
    tell(left.substr(0, end));
    left.remove_prefix(end + 1);
  }
  line_.erase(0, line_.size() - left.size());
  if (line_.size() < kMaxLineBytes) return;
  tell(line_);
  line_.clear();
}

Status ChildProcess::ended() {
  close_if_open(channel_);
  int status = 0;
  for (int waited = 0; !is_reaped_; waited += kLookEveryMs) {
    if (waited > kMaxEndMs) kill(id_, SIGKILL);
    is_reaped_ = uninterrupted([&] { return waitpid(id_, &status, WNOHANG); }) == id_;
    if (!is_reaped_) poll(nullptr, 0, kLookEveryMs);
  }
  take_printed();
  return Status::unavailable(describe_end(status));
}

std::string ChildProcess::last_lines() const {
  const std::size_t end = last_.find_last_not_of('\n');
  return end == std::string::npos ? std::string() : last_.substr(0, end + 1);
}

}  // namespace batchloom
