// SPDX-License-Identifier: Apache-2.0
// Log lines to stderr. Results of a command never go through here (they go to stdout).
#pragma once

#include <string_view>

namespace batchloom {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Lines below `level` are dropped from now on (default: kInfo). Thread-safe.
void set_log_level(LogLevel level);

/// One line to stderr with time and level. Thread-safe.
void log(LogLevel level, std::string_view message);

inline void log_debug(std::string_view message) {
  log(LogLevel::kDebug, message);
}
inline void log_info(std::string_view message) {
  log(LogLevel::kInfo, message);
}
inline void log_warning(std::string_view message) {
  log(LogLevel::kWarning, message);
}
inline void log_error(std::string_view message) {
  log(LogLevel::kError, message);
}

}  // namespace batchloom
