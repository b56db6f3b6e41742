// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

namespace batchloom::cli {

/// Lines of stdin, whatever is in them, as a pace that another program sets. One thread at a time.
class Pace {
 public:
  /// Waits for a line: true; false once stdin has ended, or `stop` was triggered.
  bool next(const std::stop_token& stop);

 private:
  std::uint64_t lines_ = 0;  // Read and not given out yet.
};

}  // namespace batchloom::cli
