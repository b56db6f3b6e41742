// SPDX-License-Identifier: Apache-2.0
// Trimming steps that nobody needs, without a clock and without asking anybody.
//
//  a. Read a head, then list pins and live cursors; F is the lowest step that one of them keeps.
//     Without any, or where F is not above first_step, nothing is trimmed. Those below first_step
//     promise nothing, here as in (c), and are passed over.
//  b. Commit an intent {F, this slot}. One for the same F that is there already will do, whoever
//     committed it: what counts is that (c) comes after it. So a lost reply is settled, what a dead
//     reclaimer left is taken over, and two that want the same do not hinder each other.
//  c. List them again; F' = min(F, what they keep now). A pin that was put before (b) is seen here,
//     and whoever puts one after (b) sees the intent.
//  d. Commit first_step = min(next_step, max(first_step, F')), only while the head still carries
//     the very intent of (b). Another one there, or none: begin at (a). The maximum matters where
//     another has trimmed further since (a): what promised something there may not any more.
//  e. Only then may objects of steps below first_step be deleted (reclaimer.h).
//
// A reclaimer that dies after (b) leaves an intent that the next one replaces or takes over.
#pragma once

#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"

namespace batchloom::store {

/// What stops trimming: the lowest step that a pin, or a live cursor that is not closed, keeps.
/// nullopt where there is neither. Those below `first_step` promise nothing and are left out. Reads
/// each of them. `corruption` naming the key of a damaged one: what it keeps is not known.
Result<std::optional<Step>> lowest_kept_step(const Stream& stream, Step first_step,
                                             const CallOptions& call);

struct TrimReport {
  Step first_step;              ///< Of the newest head that was read.
  std::uint64_t steps = 0;      ///< Trimmed by this call.
  std::uint64_t withdrawn = 0;  ///< Times that another's intent, or a pin's writer, came between.
};

/// One whole trim, (a) to (d). Errors: those of the store, and `corruption` for a damaged pin or
/// cursor. Safe to repeat, and to run anywhere at once.
Result<TrimReport> trim(const Stream& stream, ManifestReader& reader, const CallOptions& call);

/// The head that trim() would leave after `head`, where `kept` is what stops it and nobody else
/// commits; `head` itself where nothing is to be trimmed. Pure.
Head preview_trim(const Head& head, std::optional<Step> kept, const Safeguards& safeguards);

}  // namespace batchloom::store
