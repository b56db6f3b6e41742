// SPDX-License-Identifier: Apache-2.0
// What a reclaimer removes, and how: in requests of bounded size, counted by kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "batchloom/store/stream.h"

namespace batchloom::store {

enum class RemovalKind : std::uint8_t { kSlot, kSegment, kBatch, kState, kMembership };

/// "slot", "segment", "batch", "state", "membership".
std::string_view to_string(RemovalKind kind);

/// An object that nobody needs, and why nobody ever will.
struct Removal {
  RemovalKind kind = RemovalKind::kSlot;
  std::string key;
  std::string reason;  ///< For people: "never committed: term 3 of p was replaced by term 7".
};

struct ReclaimOptions {
  /// Commit and remove nothing; report what this pass would remove if nobody else did anything.
  bool dry_run = false;
  /// Trim first what neither pins nor live cursors keep (trimmer.h). Off: steps stay as they are.
  bool trim = true;
  /// Told of each object that is gone (in a dry run: would go). Must not call the reclaimer.
  std::function<void(const Removal&)> on_removal = {};
};

/// What a pass did; in a dry run: would do.
struct ReclaimReport {
  Slot floor;
  Step first_step;
  std::uint64_t steps_trimmed = 0;
  std::uint64_t slots_removed = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t batches_removed = 0;
  std::uint64_t states_removed = 0;
  std::uint64_t memberships_removed = 0;
  std::uint64_t failed = 0;  ///< Removals that failed; the next pass tries again.
  Status first_failure;      ///< Of the first of them, naming its key.

  std::uint64_t& removed(RemovalKind kind);
  /// Of all kinds.
  std::uint64_t removed() const {
    return slots_removed + segments_removed + batches_removed + states_removed +
           memberships_removed;
  }
};

/// Removes what it is given, many at a time. One thread at a time.
class Remover {
 public:
  /// All of them outlive it.
  Remover(const Stream& stream, const ReclaimOptions& options, ReclaimReport& report)
      : stream_(stream), options_(options), report_(report) {}

  /// Takes one object in, and removes all it holds once they are enough for a request.
  Status add(Removal removal, const CallOptions& call);
  /// Removes what it still holds. Only objects that are surely gone are counted and told (another
  /// reclaimer may have been first); failures go into the report.
  Status flush(const CallOptions& call);

 private:
  void count(const Removal& removal);

  const Stream& stream_;
  const ReclaimOptions& options_;
  ReclaimReport& report_;
  std::vector<Removal> pending_;
};

}  // namespace batchloom::store
