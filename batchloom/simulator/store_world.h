// SPDX-License-Identifier: Apache-2.0
// One simulated world of the batch store: processes that produce, train, reclaim, observe and
// operate one stream, and what befalls them.
//
//  1. Every process runs the product's own code: Stream, ProducerSession, OrderedAppender,
//     Consumer, pins, live cursors, events, Reclaimer, ManifestReader.
//  2. Producers publish their sources, and the operator now and then an event; once all of it is
//     published, the operator ends the stream. Trainers read it from checkpoint to checkpoint: they
//     pin one every few steps and drop older ones, so that reclaimers may trim.
//  3. Processes crash, are suspended across whole reclamations, and producers meet rivals under
//     their own name, while the network loses, delays and repeats requests. Whoever ends before its
//     work does is started again.
//  4. After `chaos_points` picks nothing goes wrong any more, and everything must come to its
//     end: every consumer reaches the end of the stream.
//  5. What processes are told (a receipt, a head, an entry, a state, a pin, a step) they claim
//     before the judges, who compare it with the history of the bucket.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/metrics.h"
#include "batchloom/objstore/retrying_store.h"
#include "batchloom/simulator/sim_store.h"
#include "batchloom/simulator/store_history.h"
#include "batchloom/simulator/store_judge.h"
#include "batchloom/simulator/store_scenario.h"
#include "batchloom/store/stream.h"

namespace batchloom::simulator {

/// A fault of one run, for taking away: the n-th crash, suspension or rival, or a call that met a
/// network fault.
struct Trouble {
  enum class Kind : std::uint8_t { kCrash, kSuspension, kRival, kNetwork };
  Kind kind = Kind::kNetwork;
  std::uint64_t ordinal = 0;      ///< Of crashes, suspensions and rivals.
  objstore::FaultCall call = {};  ///< Of network faults.
  friend auto operator<=>(const Trouble&, const Trouble&) = default;
};

/// "crash", "suspension", "rival", "network".
std::string_view to_string(Trouble::Kind kind);

struct StoreWorldOptions {
  std::uint64_t seed = 0;
  std::optional<store::Safeguard> broken;
  /// Reported on but not broken: where a run first uses it (see StoreRun::first_use).
  std::optional<store::Safeguard> watched;
  std::vector<Trouble> without;  ///< These do not happen.
};

/// Where in the history something was.
struct TracePoint {
  std::uint64_t points = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const TracePoint&, const TracePoint&) = default;
};

/// What came out of one seed.
struct StoreRun {
  std::vector<std::string> violations;
  std::uint64_t points = 0;
  std::uint64_t trace_hash = 0;
  std::optional<TracePoint> first_use;          ///< Of the broken or watched safeguard.
  std::map<std::string, std::uint64_t> events;  ///< How often each thing happened, by name.
  std::vector<Trouble> troubles;                ///< All that happened, in order of kind.
};

/// Runs one seed to its end.
StoreRun run_store_world(const StoreWorldOptions& options);

}  // namespace batchloom::simulator
