// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/watched_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "batchloom/base/log.h"

namespace batchloom::control {
namespace {

/// A source names a pair of files by one of them.
bool is_of(const SourceConfig& source, const std::string& path) {
  const auto stem = [](const std::string& file) {
    return std::filesystem::path(file).replace_extension();
  };
  return std::ranges::any_of(source.paths, [&](const std::string& file) {
    return file == path || (source.format == SourceFormat::kMegatron && stem(file) == stem(path));
  });
}

}  // namespace

WatchedWork::WatchedWork(Runtime& runtime, const PipelineConfig& config,
                         const sources::FileCalls& calls, const SlowLimits& limits,
                         std::function<void()> work)
    : runtime_(runtime),
      config_(config),
      calls_(calls),
      limits_(limits),
      looks_(limits),
      done_(runtime, false) {
  task_ = runtime.spawn("files", [this, work = std::move(work)](const std::stop_token&) {
    work();
    done_.change([](bool& done) { done = true; });
  });
}

WatchedWork::~WatchedWork() {
  task_->join();
}

std::string WatchedWork::describe(const sources::FileCall& out) const {
  const auto of = [&](const SourceConfig& source) { return is_of(source, out.path); };
  const auto source = std::ranges::find_if(config_.sources, of);
  return fmt::format("source '{}': {} {}", source == config_.sources.end() ? "" : source->name,
                     to_string(out.stage), out.path);
}

Status WatchedWork::look(Time now) {
  const auto warn = [&](const auto& seen) {
    log_warning(fmt::format("{}: for {:.1f} s now", describe(seen.item), seconds_of(seen.waited)));
  };
  const auto* seen = looks_.look(calls_.out(), now, warn);
  if (seen == nullptr) return Status::ok();
  Status late = Status::unavailable(
      fmt::format("{}: for {:.1f} s: no more than {:.1f} s is waited; is its storage there?",
                  describe(seen->item), seconds_of(seen->waited), seconds_of(limits_.wait_max)));
  // Now: whoever gets the error first waits for the thread that hangs.
  log_error(late.message());
  return late;
}

Status WatchedWork::wait(const CallOptions& call) {
  for (;;) {
    const Time look_at = std::min(call.deadline, runtime_.now() + looks_.look_every());
    Status done = done_.wait_until([](bool is_done) { return is_done; },
                                   {.deadline = look_at, .stop = call.stop});
    const Time now = runtime_.now();
    if (!done.is(ErrorKind::kUnavailable) || now >= call.deadline) return done;
    BL_RETURN_IF_ERROR(look(now));
  }
}

}  // namespace batchloom::control
