// SPDX-License-Identifier: Apache-2.0
// Reads steps that are committed: as they are stored, or laid out anew for another topology.
//
//  1. The head and its segments name the object that holds a step.
//  2. As stored: the rank's runs of a whole pack come with one request, and those of later steps
//     are kept by the caller. A pack is read step by step where one of its steps is skipped or
//     proved damaged, so that damage stops nobody before its own step.
//  3. Anew: the index (read once per object) gives the stored plan, `plan_step` the new one, and
//     the pieces that overlap are read and cut (replanned_step.h). Where a job says what topology
//     it has, steps that were laid out for it are read as they are stored all the same.
//  4. Whatever is missing or damaged may have been trimmed since the head was read: the head is
//     read once more, and says which it is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/client/head_feed.h"
#include "batchloom/client/step_batch.h"
#include "batchloom/model/topology.h"
#include "batchloom/store/segment_reader.h"

namespace batchloom::client {

/// What the index says of a step.
struct StoredStep {
  Step step;
  const store::IndexedStep& indexed;
  const store::BatchOrigin& origin;
};

/// Lays a step's samples out for another topology than the one it was stored for. Pure; every rank
/// must get the same plan for the same index. Called on the thread that reads ahead.
using PlanStep = std::function<Result<model::StepPlan>(const StoredStep&)>;

/// Whether a job takes steps like this one at all. Pure, as PlanStep.
using AdmitStep = std::function<Status(const StoredStep&)>;

/// What to read of each step.
struct FetchOptions {
  model::HdpRank rank = {};
  std::uint32_t ranks = 0;       ///< Steps are for so many HDP ranks; 0: for any number.
  PlanStep plan_step = nullptr;  ///< Absent: steps as they are stored.
  /// With plan_step: steps that are laid out for this topology are read as they are stored.
  std::optional<model::Topology> topology = {};
  AdmitStep admit = nullptr;       ///< Present: asked of the first step of each producer's term.
  std::uint32_t ring_max = 0;      ///< Ranks that may share a sample; 0: any number.
  std::vector<Step> skipped = {};  ///< Ascending. Never read.
};

/// Steps that were read together, in order; at least one.
struct FetchedSteps {
  std::vector<StepPtr> steps;
  std::uint64_t held_bytes = 0;  ///< Of all buffers that they keep alive.
};

/// A read that can begin.
struct StepRead {
  /// What it will hold at most, beside an index. Where the entry carries no run table (large
  /// objects), the rank's fair share of the object instead.
  std::uint64_t size_bytes = 0;
  std::function<Result<FetchedSteps>(const CallOptions&)> fetch;  ///< Uses its fetcher.
};

/// Counters: client_fetched_bytes (of runs and pieces), client_rereads (times that the head was
/// read again, or a pack step by step, because of damage). One thread at a time, but
/// after_skipped().
class StepFetcher {
 public:
  /// `feed` outlives it.
  StepFetcher(HeadFeed& feed, FetchOptions options);

  /// Finds `step` and what reading it takes. Precondition: the head's next_step is above it. Errors
  /// of this and of the read: `not_found` for a step that was trimmed; `corruption` for one that is
  /// damaged or missing; `invalid` for a layout without this rank, a ring that is too large, or a
  /// new plan that is no plan of this step; what plan_step and admit answer.
  Result<StepRead> prepare(const store::Head& head, Step step, const CallOptions& call);

  /// `step`, or the first one after it that is not skipped.
  Step after_skipped(Step step) const;

 private:
  struct Planned;

  /// By admit. A strategy may change with each new run of a producer, and only then. A step whose
  /// index is damaged passes: its runs may be whole, and the next one tells.
  Status check_admitted(const store::Entry& entry, Step step, const CallOptions& call);
  Result<StepRead> prepare_entry(const store::Head& head, const store::Entry& entry, Step step,
                                 const CallOptions& call);
  Result<StepRead> prepare_stored(const store::Entry& entry, Step step);
  Result<StepRead> prepare_anew(const store::Entry& entry, Step step, const CallOptions& call);
  Result<FetchedSteps> read_stored(const store::Entry& entry, Step step, const CallOptions& call);
  static std::uint64_t layout_bound(const Planned& planned, model::HdpRank rank);
  Result<FetchedSteps> read_anew(const Planned& planned, const CallOptions& call);
  FetchedSteps counted(FetchedSteps fetched);
  Result<std::shared_ptr<const store::BatchIndex>> index_of(const store::Entry& entry,
                                                            const CallOptions& call);
  Result<model::StepPlan> plan_anew(const StoredStep& stored) const;
  /// The batches from `step` on, up to the first that this job cannot run.
  Result<FetchedSteps> take_steps(const store::Entry& entry, Step step,
                                  std::vector<store::Run> runs);
  bool reads_whole_pack(const store::Entry& entry, Step step) const;
  Status check_ranks(Step step, std::uint32_t ranks) const;
  Status check_rings(const StepBatch& batch) const;
  bool plans_anew(const store::Head& head, const store::Entry& entry, Step step) const;
  enum class Part : std::uint8_t { kManifest, kBatchObject };
  struct Failed {
    Step step;
    Part part;
  };
  /// Why a step could not be read: trimmed meanwhile, or `error`.
  Status explain(const Failed& failed, const Status& error, const CallOptions& call);
  /// What to do where the part is damaged.
  static std::string_view advice(Part part);

  HeadFeed& feed_;
  const FetchOptions options_;
  store::SegmentReader segments_;
  store::BatchReader reader_;
  Counter& fetched_bytes_;
  Counter& rereads_;
  std::map<std::string, store::Term, std::less<>> admitted_;  // By producer.
  std::optional<store::Nonce> damaged_;  // The object that is read step by step.
  struct CachedIndex {
    store::Nonce object;
    std::shared_ptr<const store::BatchIndex> index;
  };
  std::optional<CachedIndex> index_;
};

/// Whether what is laid out for one topology is what the other's ranks run: the same HDP ranks,
/// and the same groups along cp.
bool same_layout(const model::Topology& one, const model::Topology& other);

/// The error for a step below the stream's first: `not_found`, naming both.
Status trimmed(Step step, Step first_step);

}  // namespace batchloom::client
