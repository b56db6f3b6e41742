// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/actor.h"

namespace batchloom::simulator {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(5);

}  // namespace

Status pause(Runtime& runtime) {
  const Duration length = kPause * static_cast<Duration::rep>(1 + draw(runtime, 8)) / 4;
  return runtime.sleep_until({.deadline = runtime.now() + length, .stop = {}});
}

CallOptions draw_call(Runtime& runtime, std::uint64_t odds) {
  if (!one_in(runtime, odds)) return {};
  return {.deadline = runtime.now() + kPause, .stop = {}};
}

}  // namespace batchloom::simulator
