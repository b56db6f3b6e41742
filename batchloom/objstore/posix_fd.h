// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace batchloom::objstore {

/// Repeats `call` for as long as a signal interrupts it.
template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// An owned file descriptor, or -1. One thread at a time.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// Gives the descriptor away.
  int release() { return std::exchange(fd_, -1); }

  /// open(2), never inherited by another program; errno says why it is not open.
  static Fd open(const std::string& path, int flags, mode_t mode = 0666) {
    return Fd(retry_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
  }

  /// True: this descriptor holds the file's flock; false: errno says why not (EWOULDBLOCK: somebody
  /// else holds it).
  bool try_flock() const {
    return retry_interrupted([&] { return flock(fd_, LOCK_EX | LOCK_NB); }) == 0;
  }

 private:
  int fd_;
};

}  // namespace batchloom::objstore
