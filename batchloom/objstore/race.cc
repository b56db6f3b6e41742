// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace batchloom::objstore {
namespace {

/// Racers' bodies begin this far apart in one random buffer.
constexpr std::size_t kShift = 64;
constexpr int kMaxAttempts = 10;
constexpr Duration kPause = std::chrono::milliseconds(20);

bool undecided(const Result<PutReply>& reply) {
  return reply.is(ErrorKind::kConflict) || reply.is(ErrorKind::kUnavailable);
}

}  // namespace

RaceBodies::RaceBodies(int racers, std::size_t size_bytes)
    : racers_(racers),
      size_bytes_(size_bytes),
      buffer_(random_bytes(size_bytes + static_cast<std::size_t>(racers) * kShift, size_bytes)) {}

ByteSpan RaceBodies::of(int racer) const {
  return ByteSpan(buffer_).subspan(static_cast<std::size_t>(racer) * kShift, size_bytes_);
}

Result<PutReply> race_to_create(ObjectStore& store, Runtime& runtime, const std::string& key,
                                ByteSpan body, const CallOptions& call) {
  for (int attempt = 1;; ++attempt) {
    auto reply = put_bytes(store, key, body, PutCondition::absent(), call);
    if (!undecided(reply) || attempt == kMaxAttempts) return reply;
    const Time due = runtime.now() + attempt * kPause;
    if (due >= call.deadline) return reply;
    BL_RETURN_IF_ERROR(runtime.sleep_until({.deadline = due, .stop = call.stop}));
  }
}

void judge_race(CheckRun& run, const std::string& key, const RaceBodies& bodies,
                const std::vector<RaceEnd>& ends) {
  std::vector<int> applied;
  std::vector<int> unknown;
  for (int racer = 0; racer < bodies.racers(); ++racer) {
    const RaceEnd& end = ends[static_cast<std::size_t>(racer)];
    if (end == PutOutcome::kApplied) applied.push_back(racer);
    if (end == PutOutcome::kUnknown) unknown.push_back(racer);
  }
  if (applied.size() > 1) {
    return run.fail(fmt::format("{} of {} racing creators of '{}' were told that they won",
                                applied.size(), bodies.racers(), key));
  }
  const auto& candidates = applied.empty() ? unknown : applied;
  if (candidates.empty()) {
    return run.fail(fmt::format("none of {} racing creators of '{}' won", bodies.racers(), key));
  }
  const auto data = run.get(key);
  if (!data) return run.fail(fmt::format("'{}' is missing after a race for it", key));
  const bool is_winners = std::ranges::any_of(
      candidates, [&](int racer) { return std::ranges::equal(data->bytes, bodies.of(racer)); });
  run.expect(is_winners, fmt::format("'{}' does not hold the bytes of the race's winner", key));
}

void race_tasks(CheckRun& run, const std::string& key, const RaceBodies& bodies) {
  const auto racers = static_cast<std::size_t>(bodies.racers());
  std::vector<Result<PutReply>> replies(racers, Status::unavailable("not started"));
  const auto start = run.runtime().make_event();
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::size_t i = 0; i < racers; ++i) {
    tasks.push_back(run.runtime().spawn(fmt::format("racer-{}", i), [&, i](std::stop_token) {
      if (Status go = start->wait(run.call()); !go.is_ok()) {
        replies[i] = go;
        return;
      }
      replies[i] = race_to_create(run.store(), run.runtime(), key, bodies.of(static_cast<int>(i)),
                                  run.call());
    }));
  }
  start->set();
  for (const auto& task : tasks) task->join();

  std::vector<RaceEnd> ends;
  for (const auto& reply : replies) {
    if (!reply.is_ok() && !reply.is(ErrorKind::kConflict)) run.note_error(reply.status());
    ends.push_back(reply.is_ok() ? RaceEnd(reply->outcome) : std::nullopt);
  }
  judge_race(run, key, bodies, ends);
}

}  // namespace batchloom::objstore
