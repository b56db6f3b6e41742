// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "batchloom/base/log.h"
#include "batchloom/base/quantity.h"

namespace batchloom::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{500};
constexpr std::chrono::seconds kInLog{10};

}  // namespace

std::string progress_text(const control::PipelineConfig& config, const ProgressLook& look) {
  const control::PipelineProgress& now = look.now;
  const double per_second = look.seconds > 0 ? 1 / look.seconds : 0;
  std::string text =
      fmt::format("step {}, {:.1f} steps/s, {:.3g} Mtokens/s", now.next_step.value,
                  static_cast<double>(now.steps - look.before.steps) * per_second,
                  static_cast<double>(now.tokens - look.before.tokens) * per_second / 1e6);
  if (config.store.lead_steps) {
    text += fmt::format(", lead {} of {}", now.lead, *config.store.lead_steps);
  }
  text += fmt::format(", imbalance {:.2f} -> {:.2f}, memory {:.0f} MiB", now.imbalance_before,
                      now.imbalance_after, static_cast<double>(now.memory_bytes) / (1 << 20));
  if (now.struck > 0) text += fmt::format(", {} bad records", now.struck);
  if (now.waits_for == control::WaitsFor::kConsumer) {
    text += ", waiting for a consumer";
  } else if (now.waits_for == control::WaitsFor::kRoom) {
    text += ", waiting for room (store.retain)";
  } else if (now.held_up_by) {
    text += fmt::format(", waiting for source {}", config.sources[now.held_up_by->value].name);
  }
  return text;
}

ProgressLine::ProgressLine(Runtime& runtime, const control::PipelineConfig& config,
                           const control::Pipeline& pipeline)
    : runtime_(runtime),
      config_(config),
      pipeline_(pipeline),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      task_(runtime.spawn("progress", [this](const std::stop_token& stop) { work(stop); })) {}

ProgressLine::~ProgressLine() {
  task_->request_stop();
  task_->join();
  if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::work(const std::stop_token& stop) {
  ProgressLook look{.before = pipeline_.progress(), .now = {}};
  Time last = runtime_.now();
  const Duration pause = is_terminal_ ? Duration(kOnTerminal) : Duration(kInLog);
  while (runtime_.sleep_until({.deadline = last + pause, .stop = stop}).is_ok()) {
    look.now = pipeline_.progress();
    look.seconds = std::chrono::duration<double>(runtime_.now() - last).count();
    const std::string text = progress_text(config_, look);
    if (is_terminal_) {
      fmt::print(stderr, "\r\x1b[K{}", text);
      std::fflush(stderr);
    } else {
      log_info(text);
    }
    look.before = look.now;
    last = runtime_.now();
  }
}

}  // namespace batchloom::cli
