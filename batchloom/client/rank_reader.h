// SPDX-License-Identifier: Apache-2.0
// All that one rank of a training job needs: from a URL to its batches, as trainers take them.
//
//  1. open() waits for the stream to be there, opens it, and finds out where to begin: where the
//     checkpoint says, where the caller says, or at step 0. A group that left pins or a live cursor
//     has run before: without a state it is refused, for it would train on the same steps again.
//  2. Steps for another topology than the job's are planned anew (replan.h).
//  3. next() hands out steps in order, each as arrays in one pooled buffer (trainer_view.h).
//  4. The job's first rank reports the group's live cursor; any rank may pin.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "batchloom/client/consumer.h"
#include "batchloom/client/trainer_view.h"
#include "batchloom/store/open_url.h"

namespace batchloom::client {

struct RankReaderOptions {
  store::StoreLocation location;
  std::string group;  ///< The job: what its ranks have in common, across restarts.
  model::Rank rank = {};
  model::Topology topology = {};
  /// At most one of the two. A state is of this stream, and of steps that are there.
  std::optional<ConsumerState> resume = {};
  std::optional<Step> start = {};
  Slot min_slot = {};  ///< As in ConsumerOptions.
  /// Samples may lie on more ranks than the extent of cp, and ranks may run other numbers of
  /// micro-batches: the trainer exchanges what that takes. Without it streams of hdp are `invalid`.
  bool split_samples = false;
  /// Bytes of steps that were read ahead. As many of buffers that are not in use may be kept, or
  /// the last two.
  std::uint64_t prefetch_bytes = std::uint64_t{256} << 20;
  /// Of so many steps the arrays are made ahead, for 20 bytes a token; 0: by next() itself.
  std::size_t views_ahead = 1;
  /// The job's first rank reports the group's live cursor. False where another process of that rank
  /// does.
  bool report_cursor = true;
  std::uint32_t report_steps = 8;  ///< As in ConsumerOptions.
  /// What the caller has waited for the stream before this call, which the error then says, too.
  Duration waited_before = Duration::zero();
};

/// Where a rank begins; what several processes of one rank must agree on.
struct RankStart {
  Slot slot;            ///< The newest head: a min_slot for all of them.
  ConsumerState state;  ///< The one to resume from; where none was given, that before the start.
};

/// A step for a trainer. May outlive its reader.
struct RankBatch {
  TrainerView view;
  ConsumerState state;  ///< After it: for the checkpoint that holds what was learned from it.

  const StepBatch& step() const { return *view.step; }
};

/// One thread at a time; the accessors are thread-safe.
class RankReader {
 public:
  /// Until the deadline waits for a stream that is not there yet: then `not_found`, naming URL and
  /// host. Opening what is there may take 10 s longer. `invalid`: a rank outside the topology's
  /// world, a bad group name, both resume and start, another stream's state; a group that has run
  /// before, without either (ErrorCase::kResumeMissing). Otherwise as Consumer::open(). `runtime`
  /// outlives it.
  static Result<std::unique_ptr<RankReader>> open(Runtime& runtime, RankReaderOptions options,
                                                  const CallOptions& call);
  /// Only what open() finds out before it reads; nothing stays behind. Errors as of open().
  static Result<RankStart> find_start(Runtime& runtime, const RankReaderOptions& options,
                                      const CallOptions& call);
  /// Leaves the group's live cursor open, as a crash does: the group may come back.
  ~RankReader();

  /// The next step; null at the end of an ended stream. As Consumer::next(), and `invalid` where a
  /// trainer cannot take the step (view_for_trainer()), until seek().
  Result<std::shared_ptr<const RankBatch>> next(const CallOptions& call);

  /// As Consumer.
  ConsumerState state() const;
  Slot opened_with() const;
  const std::vector<Step>& skipped() const;
  Status seek(const ConsumerState& state, const CallOptions& call);
  Status close(const CallOptions& call);

  /// Keeps the steps from the state on for a checkpoint of this name. With `keep`, older ones of
  /// its series go, as pin_checkpoint() says. `invalid` for another stream's state; errors of
  /// pin_step().
  Status pin(const ConsumerState& state, const std::string& name,
             const std::optional<std::uint64_t>& keep, const CallOptions& call);
  /// How many pins of this name the group had.
  Result<std::size_t> unpin(const std::string& name, const CallOptions& call);

  /// By name: those of the store, of the client and of the buffers.
  std::map<std::string, std::uint64_t> counters() const;

 private:
  class Impl;
  explicit RankReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::client
