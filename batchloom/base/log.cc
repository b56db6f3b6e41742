// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>

namespace batchloom {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

/// Never destroyed, so that a thread may still log while the process exits.
spdlog::logger& stderr_logger() {
  static spdlog::logger& logger =
      *new spdlog::logger("batchloom", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  return logger;
}

}  // namespace

void set_log_level(LogLevel level) {
  stderr_logger().set_level(spdlog_level(level));
}

void log(LogLevel level, std::string_view message) {
  if (level == LogLevel::kOff) return;
  stderr_logger().log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace batchloom
