// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/objstore/check_run.h"

namespace batchloom::objstore {

/// What creators that race for one key write: each other bytes at every place, from one buffer.
/// Immutable; thread-safe.
class RaceBodies {
 public:
  RaceBodies(int racers, std::size_t size_bytes);

  int racers() const { return racers_; }
  ByteSpan of(int racer) const;

 private:
  int racers_;
  std::size_t size_bytes_;
  Bytes buffer_;
};

/// Creates `key` once. A `conflict` (neither is decided) or a refusal that was surely not applied
/// is followed by another attempt, a few times.
Result<PutReply> race_to_create(ObjectStore& store, Runtime& runtime, const std::string& key,
                                ByteSpan body, const CallOptions& call);

/// How one racer ended; nullopt for an error, such as a conflict to the end.
using RaceEnd = std::optional<PutOutcome>;

/// Wants exactly one winner, whose bytes `key` holds now. A racer with an unknown outcome may be
/// the winner where no other is.
void judge_race(CheckRun& run, const std::string& key, const RaceBodies& bodies,
                const std::vector<RaceEnd>& ends);

/// One race of tasks for `key`.
void race_tasks(CheckRun& run, const std::string& key, const RaceBodies& bodies);

}  // namespace batchloom::objstore
