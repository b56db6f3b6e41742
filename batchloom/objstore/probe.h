// SPDX-License-Identifier: Apache-2.0
// The start-up probe: does this store keep the promises that the batch store rests on?
//
// Servers exist that ignore conditions, that crown several winners when creators race (though they
// answer right one at a time), that lose ranges, or whose listings lag behind. On those a training
// run would lose or repeat data without any error, so Batchloom refuses them. The checks are the
// first part of the conformance suite, which has more (conformance_testing.h).
#pragma once

#include <string>
#include <vector>

#include "batchloom/objstore/check_run.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

struct ProbeOptions {
  /// Size of the large object that creators race for: use the size of a batch, since servers differ
  /// by size (multipart thresholds, write buffers). 0 leaves that check out.
  std::size_t batch_size_bytes = std::size_t{9} << 20;
  int racers = 16;       ///< Tasks that create one key at once.
  int small_rounds = 8;  ///< Races for small objects. More find rarer errors and take longer.
  int batch_rounds = 2;  ///< Races for large ones; each sends racers * batch_size_bytes.
};

enum class ProbeOutcome : std::uint8_t { kPassed, kFailed, kNotApplicable };

struct ProbeFinding {
  std::string check;
  ProbeOutcome outcome = ProbeOutcome::kPassed;
  std::string reason;  ///< Why it failed, or does not apply.
};

struct ProbeReport {
  std::vector<ProbeFinding> findings;    ///< In the order they ran.
  std::vector<std::string> left_behind;  ///< Keys of the probe's own that could not be removed.

  /// Ok, or `invalid` naming the first failed check: do not use this store.
  Status verdict() const;
};

/// The checks that the probe runs, in order.
std::vector<StoreCheck> probe_checks(const ProbeOptions& options);

/// Runs them under `probe/<random>/` and removes what they wrote. An error (`unavailable`,
/// `cancelled`, `exhausted`) means that a check could not be finished and nothing is known; so does
/// `invalid`, which names a key that the probe may not put, get, list or remove. Blocks; starts
/// `racers` tasks and joins them. Thread-safe.
Result<ProbeReport> probe(ObjectStore& store, Runtime& runtime, const ProbeOptions& options,
                          const CallOptions& call);

}  // namespace batchloom::objstore
