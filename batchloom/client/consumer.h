// SPDX-License-Identifier: Apache-2.0
// A rank's way through a stream. Its position is one integer, the next step; nothing in the store
// depends on who has read what.
//
//  1. open() waits for a head of at least `min_slot`, checks that `start` is there, and takes the
//     SKIPs of a head, once: of the very head `min_slot`, so that all ranks that open with the same
//     min_slot pass over the same steps. Where that one is not stored any more the newest head will
//     do if it skips nothing from `start` on; else open() is refused. Without a min_slot it is the
//     newest head.
//  2. A prefetcher reads ahead in step order, bounded in bytes (prefetcher.h). Heads are polled
//     only while the visible lead is below what the prefetcher may hold, once for all consumers of
//     a process (head_feed.h).
//  3. next() hands out steps in order: every one, or an error that names it. Nothing unverified is
//     handed out; a trimmed step is an error, never a silent skip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchloom/client/delivered_step.h"
#include "batchloom/client/head_feed.h"
#include "batchloom/client/step_batch.h"
#include "batchloom/client/step_fetcher.h"
#include "batchloom/client/trainer_view.h"

namespace batchloom::client {

/// What a model checkpoint keeps of a consumer.
struct ConsumerState {
  store::StreamUuid stream;
  Step next_step;
  std::uint64_t samples_hash = 0;  ///< Over all steps delivered, in order: next_samples_hash().
  /// The one delivered last; absent before any, and in states of builds that did not note it.
  std::optional<DeliveredStep> last = {};
  friend bool operator==(const ConsumerState&, const ConsumerState&) = default;
};

/// What open() does where `start` is above the next step of a stream that has not ended.
enum class BeyondEnd : std::uint8_t {
  kWait,    ///< next() waits for it.
  kRefuse,  ///< `invalid`, naming both.
};

struct ConsumerOptions {
  model::HdpRank rank = {};
  /// The HDP ranks of the job. A step that is laid out for another number is `invalid`, for its
  /// runs would not be this job's; 0 leaves that unchecked.
  std::uint32_t ranks = 0;
  /// Absent: runs as they are stored. Else the plan of every step comes from here, and `rank` is
  /// one of its ranks; whole pieces that overlap are then read and cut.
  PlanStep plan_step = nullptr;
  /// With plan_step: only steps that are laid out for another topology than this one are planned
  /// anew. Where the stream does not say its topology, the number of HDP ranks tells.
  std::optional<model::Topology> topology = {};
  /// Present: asked of the first step that is read, at open where it is there, and of the first of
  /// each later run of a producer.
  AdmitStep admit = nullptr;
  /// The most ranks that may share a sample: a step with a larger ring is `invalid`, for whoever
  /// runs it alone would train on other gradients. 0: any number.
  std::uint32_t ring_max = 0;
  Step start = {};
  std::uint64_t samples_hash = 0;  ///< Of the steps before `start`, from a ConsumerState.
  /// From that state, too: the stream must have the same samples in this step, or have trimmed it.
  std::optional<DeliveredStep> last = {};
  Slot min_slot = {};  ///< Open with this head or a newer one.
  BeyondEnd beyond_end = BeyondEnd::kWait;
  /// Bytes of steps that were read ahead. The step that next() waits for is always let in.
  std::uint64_t prefetch_bytes = std::uint64_t{256} << 20;
  /// Of so many steps the arrays for trainers are made ahead, in `buffers`, which outlives the
  /// consumer: take_view().
  std::size_t views_ahead = 0;
  BufferPool* buffers = nullptr;
  /// Not empty: this consumer reports the group's live cursor: whenever it has gone `report_steps`
  /// steps, within kLongestSilence of any step, and, past skipped ones, before next() waits for a
  /// step that is not committed yet. One of a group's ranks should; the lowest.
  std::string report_group = {};
  /// At most a quarter of the lead that producers may take, or they may wait without need for up to
  /// kLongestSilence.
  std::uint32_t report_steps = 8;
};

/// Counters: client_steps and client_delivered_bytes (payload) of what next() returned, and those
/// of its parts. next(), seek() and close() are one thread at a time; the accessors are
/// thread-safe.
class Consumer {
 public:
  /// `not_found` where `start` was trimmed (naming first_step), `invalid` where it lies beyond the
  /// end of an ended stream, for kRefuse, for a rank that is none of `ranks`, and where `last` is
  /// of another history than the stream's (check_delivered()), `conflict` where
  /// min_slot's head is gone and its SKIPs may have been others: all ranks must open again with the
  /// newer min_slot that it names; of `invalid` also ErrorCase::kDoesNotFit and kSplitSamples,
  /// where the first step is there and plan_step or admit say so of it. With report_group the
  /// errors of open_live_cursor() too. `feed` may be shared by many consumers, and outlives them.
  static Result<std::unique_ptr<Consumer>> open(HeadFeed& feed, const ConsumerOptions& options,
                                                const CallOptions& call);
  /// Leaves the group's live cursor open, as a crash does: the group may come back.
  ~Consumer();

  /// The next step that is not skipped, waiting for its commit; null at the end of an ended stream,
  /// which every call looks up anew. `not_found` where it was trimmed, `corruption` where it is
  /// damaged (after a second read), `invalid` where it is not laid out for this rank: the position
  /// stays, and so does the answer until seek(). After `invalid` before anything was delivered the
  /// live cursor is closed again, where it was open() that opened it; what does not get through by
  /// the deadline is tried by the next call; seek() opens it anew.
  /// `unavailable` at the deadline: call again.
  Result<StepPtr> next(const CallOptions& call);

  /// The arrays of the step that next() gave last, where they were made ahead; once.
  std::optional<TrainerView> take_view();

  /// The step after the last that next() returned (or `start`, or where seek() went).
  Step cursor() const;
  /// For the checkpoint that holds everything delivered so far.
  ConsumerState state() const;
  /// The head whose SKIPs it took: what other ranks give as min_slot to pass over the same steps.
  Slot opened_with() const;
  /// Those SKIPs, ascending; some may lie behind.
  const std::vector<Step>& skipped() const;

  /// Goes on at `state.next_step`, forward or back. `invalid` for another stream's state, and for
  /// one of another history: it looks into the store for that, unless its last step is this one's.
  /// Where this consumer reports the group's live cursor, going back waits for the store: the
  /// cursor is opened again where it keeps only later steps, `not_found` where they were trimmed
  /// already. Other errors are those of open_live_cursor(). After an error the position stays.
  Status seek(const ConsumerState& state, const CallOptions& call);

  /// Ends reading; reports its last position and closes the group's live cursor, where this
  /// consumer reports it. Safe to repeat after an error; next() and seek() are `cancelled` from now
  /// on.
  Status close(const CallOptions& call);

 private:
  class Impl;
  explicit Consumer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::client
