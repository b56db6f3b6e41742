// SPDX-License-Identifier: Apache-2.0
#include "cli/pace.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {

bool Pace::next(const std::stop_token& stop) {
  constexpr int kLookAtStopMs = 50;
  while (lines_ == 0) {
    if (stop.stop_requested()) return false;
    pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (objstore::retry_interrupted([&] { return poll(&ready, 1, kLookAtStopMs); }) == 0) continue;
    char buffer[4096];
    const ssize_t size =
        objstore::retry_interrupted([&] { return read(STDIN_FILENO, buffer, sizeof(buffer)); });
    if (size <= 0) return false;
    const auto text = std::span(buffer).first(static_cast<std::size_t>(size));
    lines_ += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  }
  --lines_;
  return true;
}

}  // namespace batchloom::cli
