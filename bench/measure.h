// SPDX-License-Identifier: Apache-2.0
// What benchmarks of several processes share: children that measure, and statistics of what they
// say.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/check.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom {

template <class T>
T must(Result<T> result) {
  BL_CHECK(result.is_ok(), result.status().to_string());
  return std::move(result).value();
}

inline void must(const Status& status) {
  BL_CHECK(status.is_ok(), status.to_string());
}

/// The value below which a share of `values` lies. Precondition: there are some.
inline double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(share * last + 0.5)];
}

inline double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

/// User and system, of RUSAGE_SELF, or of RUSAGE_CHILDREN that were waited for.
inline double cpu_seconds(int whose) {
  rusage usage = {};
  BL_CHECK(getrusage(whose, &usage) == 0, "getrusage");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A process that runs `body` and hands its numbers over when it ends. Forked, so it must be made
/// before this process has a thread. Owned by its spawner.
class Child {
 public:
  explicit Child(const std::function<std::vector<double>()>& body) {
    int ends[2];
    BL_CHECK(pipe(ends) == 0, "no pipe");
    pid_ = fork();
    BL_CHECK(pid_ >= 0, "no child");
    if (pid_ == 0) {
      give(objstore::Fd(ends[1]), body());
      _exit(0);
    }
    close(ends[1]);
    numbers_ = objstore::Fd(ends[0]).release();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// What the child measured; aborts where it did not end well. Call it once.
  std::vector<double> join() {
    const objstore::Fd from(numbers_);
    std::vector<double> numbers;
    double number = 0;
    while (objstore::retry_interrupted([&] { return read(from.get(), &number, sizeof(number)); }) ==
           sizeof(number)) {
      numbers.push_back(number);
    }
    int status = 0;
    objstore::retry_interrupted([&] { return waitpid(pid_, &status, 0); });
    BL_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
    return numbers;
  }

 private:
  static void give(const objstore::Fd& to, const std::vector<double>& numbers) {
    auto rest = std::as_bytes(std::span(numbers));
    while (!rest.empty()) {
      const ssize_t size =
          objstore::retry_interrupted([&] { return write(to.get(), rest.data(), rest.size()); });
      BL_CHECK(size > 0, "the parent is gone");
      rest = rest.subspan(static_cast<std::size_t>(size));
    }
  }

  pid_t pid_ = -1;
  int numbers_ = -1;
};

}  // namespace batchloom
