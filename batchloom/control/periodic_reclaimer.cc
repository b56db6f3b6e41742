// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/periodic_reclaimer.h"

#include <fmt/format.h>

#include "batchloom/base/log.h"
#include "batchloom/store/reclaimer.h"

namespace batchloom::control {

PeriodicReclaimer::PeriodicReclaimer(const store::Stream& stream, Duration pause)
    : stream_(stream), pause_(pause) {
  task_ = stream_.runtime().spawn("reclaimer", [this](const std::stop_token& stop) { work(stop); });
}

PeriodicReclaimer::~PeriodicReclaimer() = default;

void PeriodicReclaimer::work(const std::stop_token& stop) {
  store::Reclaimer reclaimer(stream_);
  Runtime& runtime = stream_.runtime();
  while (runtime.sleep_until({.deadline = runtime.now() + pause_, .stop = stop}).is_ok()) {
    const Status done = reclaimer.run({.deadline = kNever, .stop = stop}).status();
    if (!done.is_ok() && !stop.stop_requested()) {
      log_warning(fmt::format("reclaiming: {}", done.to_string()));
    }
  }
}

}  // namespace batchloom::control
