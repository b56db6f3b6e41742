// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/thread_times.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "batchloom/base/check.h"
#include "batchloom/base/quantity.h"

namespace batchloom {
namespace {

/// The second number of /proc/thread-self/schedstat, in nanoseconds. The first, time on a core, is
/// brought up to date only now and then.
std::optional<std::uint64_t> nanoseconds_ready() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 96> bytes{};
  const ssize_t count = read(file, bytes.data(), bytes.size());
  close(file);
  if (count <= 0) return std::nullopt;
  const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
  const std::size_t begin = text.find(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find(' ', begin + 1);
  return parse_number(text.substr(begin + 1, end - begin - 1));
}

}  // namespace

ThreadTimes thread_times() {
  timespec cpu{};
  BL_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0, "the kernel counts no CPU time");
  const auto ready = static_cast<Duration::rep>(nanoseconds_ready().value_or(0));
  return {.cpu = std::chrono::seconds(cpu.tv_sec) + Duration(cpu.tv_nsec),
          .ready = Duration(ready)};
}

}  // namespace batchloom
