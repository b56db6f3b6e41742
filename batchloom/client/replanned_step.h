// SPDX-License-Identifier: Apache-2.0
// A stored step laid out anew, for another topology than the one it was stored for.
//
//  1. The new plan must have the very samples of the stored one: membership is not the consumer's
//     to change.
//  2. A rank needs the stored pieces that overlap its own. They are read whole, since a piece's
//     CRC covers all of it, and verified before they are cut.
//  3. Each new piece is joined from the cuts in token order. Its look-ahead is the stored token
//     that follows its last one, or the stored look-ahead where the last cut ends with its piece.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/client/step_batch.h"
#include "batchloom/model/step_plan.h"

namespace batchloom::client {

/// A step as stored, and the plan by which `rank` will run it. Borrows everything.
struct Replan {
  const model::StepPlan& stored;
  const model::StepPlan& plan;
  model::HdpRank rank;
};

/// Whether `plan` may be executed and has the samples of `stored` in their order, with their tokens
/// and labels, and has this rank. `invalid`, naming the first difference.
Status check_replan(const Replan& replan);

/// Places in stored.pieces, ascending and each once, of the pieces that overlap the rank's.
/// Precondition of this and of lay_out_anew: check_replan().
std::vector<std::uint32_t> overlapping_pieces(const Replan& replan);

/// The rank's part of the step, in a buffer of its own. `pieces` are the stored ones at `places`;
/// they may go afterwards. Step, producer and fetched_bytes are the caller's to fill in.
/// `corruption` where stored pieces leave out tokens of a sample.
Result<StepBatch> lay_out_anew(const Replan& replan, store::TokenWidth token_width,
                               std::span<const std::uint32_t> places,
                               std::span<const store::RunPiece> pieces);

}  // namespace batchloom::client
