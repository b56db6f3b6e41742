// SPDX-License-Identifier: Apache-2.0
// Is a stored stream what its protocol could have made? Everything that can be told from the stored
// bytes, checked offline.
//
//  1. List all objects; what bears a key that no part of a stream has, is foreign. An object that
//     was put meanwhile may be left out, so one that should be there is looked up before it is
//     missing.
//  2. Read the floor and every slot above it, and one more: a folder in a slot's place stands in no
//     listing, and stops every reader. Slots are dense and decode, each is chained to the one
//     before, and differs from it as one fence, commit, finish, event or step of a trim would make
//     it differ (head_transition.h).
//  3. Walk the segment tree of the newest head in step order. Segments decode and fill
//     [oldest row, tail) without a gap; the tail ends at next_step. Per producer, sequence numbers
//     go on where they stopped, terms never fall, and the head's rows agree (sequence_check.h).
//  4. Claim what the newest head needs: each segment and batch object once and of the size that the
//     manifest says, each state and the keys of each membership readable (unless a head that is
//     newer still needs them no more). What stays unclaimed is an orphan.
//  5. What holds trimmed steps alone, and still stands in a segment that holds others too, may be
//     there or not. It is counted.
//  6. Decode all pins and live cursors: damage in one of them stops every trim.
//  7. As deep as asked (batch_check.h): read the index of each batch object that is claimed, check
//     its plans and that no record is drawn twice under one membership; read the runs of all ranks.
//
// What cannot be told: a stream without its newest slots looks like an older one, and one without
// a pin like one in which it was removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/store/batch_check.h"
#include "batchloom/store/stream.h"
#include "batchloom/store/stream_inventory.h"

namespace batchloom::store {

/// What stands in a stream, and what is wrong with it.
struct VerifyReport {
  Slot floor;
  Slot newest;                  ///< The newest slot that was seen.
  std::uint64_t slots = 0;      ///< Above the floor.
  std::uint64_t leftovers = 0;  ///< Slots at or below the floor that were not removed yet.
  Step first_step;
  Step next_step;
  std::uint64_t entries = 0;            ///< Read, in segments and tail.
  std::uint64_t steps = 0;              ///< That these entries cover.
  std::uint64_t batch_bytes = 0;        ///< That these entries refer to.
  std::vector<std::uint64_t> segments;  ///< Referred to, by level.
  std::uint64_t producers = 0;          ///< Rows of the newest head.
  std::uint64_t memberships = 0;        ///< Likewise.
  std::uint64_t pins = 0;
  std::uint64_t void_pins = 0;  ///< Of steps that were trimmed already.
  std::uint64_t cursors = 0;    ///< Live ones, closed ones too.
  std::uint64_t samples = 0;    ///< In the indexes that were read.
  std::uint64_t tokens = 0;     ///< Of these samples.

  /// The newest head and its whole tree, trimmed parts aside, could be read. Otherwise entries,
  /// steps and segments are those that could, and objects that only the rest refers to are counted
  /// as orphans.
  bool complete = true;
  /// Objects that nothing refers to: left by crashes, lost races and trims, or uploaded by a
  /// session that has not committed them yet. Harmless.
  StreamInventory::Counts orphans;
  /// Objects that are referred to and hold trimmed steps alone: to be reclaimed. Harmless.
  StreamInventory::Counts trimmed;
  std::vector<std::string> foreign;  ///< Keys that no part of a stream has, in order. Harmless.
  /// One text each, as errors are (damage.h): key, byte and reason, or that the object is missing.
  std::vector<std::string> problems;

  bool is_sound() const { return problems.empty(); }
};

/// Verifies the whole stream. Damage is in the report; an error says that the verification itself
/// could not be finished: those of the object store, and `conflict` where a reclaimer has raised
/// the floor meanwhile. Producers and trims may go on, and what they do is no damage. Blocks for
/// about one read per slot and segment; memory grows by some 60 bytes an object.
/// With the depth kRecords, two or three more reads per batch object; with kPayload, all there is.
Result<VerifyReport> verify_stream(const Stream& stream, VerifyDepth depth,
                                   const CallOptions& call);

}  // namespace batchloom::store
