// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/step_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "batchloom/client/replanned_step.h"
#include "batchloom/store/batch_range.h"
#include "batchloom/store/piece_fetch.h"
#include "batchloom/store/run_table.h"

namespace batchloom::client {

using store::BatchIndex;
using store::Entry;
using store::Run;

/// A step that is to be laid out anew.
struct StepFetcher::Planned {
  Entry entry;
  Step step;
  std::shared_ptr<const BatchIndex> index;
  model::StepPlan plan;
  std::vector<std::uint32_t> places;  ///< Of the stored pieces that it needs.

  std::uint32_t position() const { return static_cast<std::uint32_t>(step - entry.first_step); }
  const model::StepPlan& stored() const { return index->steps[position()].plan; }
};

namespace {

std::uint32_t position_of(const Entry& entry, Step step) {
  return static_cast<std::uint32_t>(step - entry.first_step);
}

StepBatch make_batch(const Entry& entry, Run run) {
  return {.step = entry.first_step + run.position,
          .producer = entry.producer,
          .token_width = run.token_width,
          .samples_digest = run.samples_digest,
          .plan_digest = run.plan_digest,
          .global_valid_labels = run.global_valid_labels,
          .micro_batches = std::move(run.micro_batches),
          .events = std::move(run.events),
          .fetched_bytes = 0,
          .buffers = {std::move(run.bytes)}};
}

std::uint64_t slices_bytes(const store::PieceSlices& piece) {
  std::uint64_t bytes = 0;
  piece.for_each([&](const store::Slice& slice) { bytes += slice.size_bytes; });
  return bytes;
}

}  // namespace

/// Of what is made of the pieces that are read: each cut may repeat a look-ahead and split an
/// interval of labels, and each column is padded.
std::uint64_t StepFetcher::layout_bound(const Planned& planned, model::HdpRank rank) {
  constexpr std::uint64_t kColumns = 3;  // Of every micro-batch; each tensor is one more.
  std::uint64_t bytes = 0;
  std::uint64_t columns = 0;
  for (const std::uint32_t place : planned.places) {
    const store::PieceSlices& slices = planned.index->pieces[planned.position()][place].slices;
    bytes += slices_bytes(slices);
    columns += slices.tensors.size();
  }
  for (const model::MicroBatch& micro_batch : planned.plan.micro_batches_of(rank)) {
    columns += kColumns;
    bytes += micro_batch.pieces.size() * (sizeof(std::uint32_t) + store::kLabelIntervalBytes);
  }
  return bytes + columns * store::kColumnAlignBytes;
}

std::string_view StepFetcher::advice(Part part) {
  switch (part) {
    case Part::kBatchObject:
      return "to pass over it, commit a SKIP of the step and open all ranks anew with min_slot = "
             "its slot";
    case Part::kManifest:
      return "a part of the manifest is damaged, which many steps need: `batchloom store verify` "
             "says which; restore that object";
  }
  return "";
}

bool same_layout(const model::Topology& one, const model::Topology& other) {
  const auto hdp_axes = [](const model::Topology& topology) {
    std::vector<model::AxisExtent> axes = topology.axes();
    std::erase_if(axes, [](const model::AxisExtent& axis) {
      const bool is_hdp = axis.axis == model::Axis::kDp || axis.axis == model::Axis::kCp;
      return !is_hdp || axis.extent == 1;
    });
    return axes;
  };
  return hdp_axes(one) == hdp_axes(other);
}

Status trimmed(Step step, Step first_step) {
  return Status::not_found(
      fmt::format("step {} was trimmed: the stream begins at step {}; start or seek there, from a "
                  "checkpoint of step {} or later",
                  step.value, first_step.value, first_step.value));
}

StepFetcher::StepFetcher(HeadFeed& feed, FetchOptions options)
    : feed_(feed),
      options_(std::move(options)),
      segments_(feed.stream()),
      reader_(feed.stream()),
      fetched_bytes_(feed.stream().counters().counter("client_fetched_bytes")),
      rereads_(feed.stream().counters().counter("client_rereads")) {}

Step StepFetcher::after_skipped(Step step) const {
  for (auto next = std::ranges::lower_bound(options_.skipped, step);
       next != options_.skipped.end() && *next == step; ++next) {
    ++step;
  }
  return step;
}

Result<StepRead> StepFetcher::prepare(const store::Head& head, Step step, const CallOptions& call) {
  const Result<Entry> entry = segments_.find(head, step, call);
  if (!entry.is_ok()) return explain({step, Part::kManifest}, entry.status(), call);
  Result<StepRead> read = prepare_entry(head, *entry, step, call);
  if (!read.is_ok()) return explain({step, Part::kBatchObject}, read.status(), call);
  read->fetch = [this, step, fetch = std::move(read->fetch)](
                    const CallOptions& fetch_call) -> Result<FetchedSteps> {
    Result<FetchedSteps> fetched = fetch(fetch_call);
    if (!fetched.is_ok()) {
      return explain({step, Part::kBatchObject}, fetched.status(), fetch_call);
    }
    return fetched;
  };
  return read;
}

Status StepFetcher::check_ranks(Step step, std::uint32_t ranks) const {
  const bool fits = options_.ranks == 0 || options_.ranks == ranks;
  if (fits && options_.rank.value < ranks) return Status::ok();
  return Status::invalid(
      fmt::format("step {} is laid out for {} HDP ranks; this is rank {} of {}: give a plan_step "
                  "that lays it out for this topology",
                  step.value, ranks, options_.rank.value,
                  options_.ranks == 0 ? "any number" : std::to_string(options_.ranks)));
}

Status StepFetcher::check_rings(const StepBatch& batch) const {
  if (options_.ring_max == 0) return Status::ok();
  for (const store::RunMicroBatch& micro_batch : batch.micro_batches) {
    if (micro_batch.ring.size() <= options_.ring_max) continue;
    return Status::invalid(
        fmt::format("step {} has samples that lie on {} ranks, and in this job {} may share one: "
                    "take split samples and train by rings, or produce with a balance that keeps "
                    "them whole",
                    batch.step.value, micro_batch.ring.size(), options_.ring_max));
  }
  return Status::ok();
}

bool StepFetcher::plans_anew(const store::Head& head, const Entry& entry, Step step) const {
  if (!options_.plan_step) return false;
  if (!options_.topology) return true;
  if (entry.ranks != options_.topology->hdp_size()) return true;
  const store::TopologyRow* row = head.topology_at(step);
  if (row == nullptr) return false;  // Nobody said that there is more to it than ranks.
  const Result<model::Topology> stored = model::Topology::parse(row->axes);
  return !stored.is_ok() || !same_layout(*stored, *options_.topology);
}

Status StepFetcher::check_admitted(const Entry& entry, Step step, const CallOptions& call) {
  const auto before = admitted_.find(entry.producer);
  const bool is_known = before != admitted_.end() && before->second == entry.term;
  if (options_.admit == nullptr || is_known) return Status::ok();
  const Result<std::shared_ptr<const BatchIndex>> index = index_of(entry, call);
  if (index.is(ErrorKind::kCorruption)) return Status::ok();
  BL_RETURN_IF_ERROR(index.status());
  const store::IndexedStep& indexed = (*index)->steps[position_of(entry, step)];
  BL_RETURN_IF_ERROR(options_.admit({step, indexed, (*index)->origin}));
  admitted_.insert_or_assign(entry.producer, entry.term);
  return Status::ok();
}

Result<StepRead> StepFetcher::prepare_entry(const store::Head& head, const Entry& entry, Step step,
                                            const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(StepRead read, plans_anew(head, entry, step) ? prepare_anew(entry, step, call)
                                                                   : prepare_stored(entry, step));
  BL_RETURN_IF_ERROR(check_admitted(entry, step, call));
  return read;
}

bool StepFetcher::reads_whole_pack(const Entry& entry, Step step) const {
  if (step + 1 == entry.end_step() || damaged_ == entry.nonce) return false;
  const auto skipped = std::ranges::lower_bound(options_.skipped, entry.first_step);
  return skipped == options_.skipped.end() || *skipped >= entry.end_step();
}

Result<StepRead> StepFetcher::prepare_stored(const Entry& entry, Step step) {
  BL_RETURN_IF_ERROR(check_ranks(step, entry.ranks));
  StepRead read;
  const bool whole = reads_whole_pack(entry, step);
  const std::size_t rows_bytes = store::rank_rows_bytes(entry.steps);
  if (entry.run_table.size() == rows_bytes * entry.ranks) {
    const std::string key = store::data_key(entry.object());
    BL_ASSIGN_OR_RETURN(const store::BatchContext object,
                        store::describe_object(feed_.stream(), entry, key));
    BL_ASSIGN_OR_RETURN(
        const std::vector<store::RunRow> rows,
        store::decode_rank_rows(
            object, options_.rank,
            ByteSpan(entry.run_table).subspan(options_.rank.value * rows_bytes, rows_bytes)));
    for (std::uint32_t position = 0; position < entry.steps; ++position) {
      if (whole || position == position_of(entry, step)) {
        read.size_bytes += rows[position].size_bytes;
      }
    }
  } else {
    read.size_bytes = entry.size_bytes / entry.ranks / (whole ? 1 : entry.steps);
  }
  read.fetch = [this, entry, step](const CallOptions& call) {
    return read_stored(entry, step, call);
  };
  return read;
}

Result<FetchedSteps> StepFetcher::read_stored(const Entry& entry, Step step,
                                              const CallOptions& call) {
  std::vector<Run> runs;
  if (reads_whole_pack(entry, step)) {
    Result<std::vector<Run>> pack = reader_.read_runs(entry, options_.rank, call);
    if (pack.is_ok()) return take_steps(entry, step, std::move(pack).value());
    if (!pack.is(ErrorKind::kCorruption)) return pack.status();
    damaged_ = entry.nonce;
    rereads_.add();
  }
  BL_ASSIGN_OR_RETURN(Run run,
                      reader_.read_run(entry, position_of(entry, step), options_.rank, call));
  runs.push_back(std::move(run));
  return take_steps(entry, step, std::move(runs));
}

Result<FetchedSteps> StepFetcher::take_steps(const Entry& entry, Step step, std::vector<Run> runs) {
  FetchedSteps fetched;
  fetched.held_bytes = runs.front().bytes->size();  // They share them.
  for (Run& run : runs) {
    if (entry.first_step + run.position < step) continue;
    StepBatch batch = make_batch(entry, std::move(run));
    const Status runnable = check_rings(batch);
    if (!runnable.is_ok() && fetched.steps.empty()) return runnable;
    if (!runnable.is_ok()) break;
    if (fetched.steps.empty()) batch.fetched_bytes = fetched.held_bytes;
    fetched.steps.push_back(std::make_shared<const StepBatch>(std::move(batch)));
  }
  return counted(std::move(fetched));
}

FetchedSteps StepFetcher::counted(FetchedSteps fetched) {
  for (const StepPtr& step : fetched.steps) fetched_bytes_.add(step->fetched_bytes);
  return fetched;
}

Result<std::shared_ptr<const BatchIndex>> StepFetcher::index_of(const Entry& entry,
                                                                const CallOptions& call) {
  if (index_ && index_->object == entry.nonce) return index_->index;
  BL_ASSIGN_OR_RETURN(std::shared_ptr<const BatchIndex> index, reader_.read_index(entry, call));
  index_ = {entry.nonce, index};
  return index;
}

Result<model::StepPlan> StepFetcher::plan_anew(const StoredStep& stored) const {
  const auto context = [&] { return fmt::format("planning step {} anew", stored.step.value); };
  Result<model::StepPlan> plan = options_.plan_step(stored);
  if (!plan.is_ok()) return plan.status().with_context(context());
  const Status checked = check_replan({stored.indexed.plan, *plan, options_.rank});
  if (!checked.is_ok()) return checked.with_context(context());
  BL_RETURN_IF_ERROR(check_ranks(stored.step, static_cast<std::uint32_t>(plan->ranks.size())));
  return plan;
}

Result<StepRead> StepFetcher::prepare_anew(const Entry& entry, Step step, const CallOptions& call) {
  auto planned = std::make_shared<Planned>();
  planned->entry = entry;
  planned->step = step;
  BL_ASSIGN_OR_RETURN(planned->index, index_of(entry, call));
  const std::uint32_t position = planned->position();
  BL_ASSIGN_OR_RETURN(planned->plan,
                      plan_anew({step, planned->index->steps[position], planned->index->origin}));
  planned->places = overlapping_pieces({planned->stored(), planned->plan, options_.rank});
  StepRead read;
  for (const store::Slice& range :
       store::piece_ranges(*planned->index, position, planned->places)) {
    read.size_bytes += range.size_bytes;
  }
  read.size_bytes += layout_bound(*planned, options_.rank);
  read.fetch = [this, planned](const CallOptions& fetch_call) {
    return read_anew(*planned, fetch_call);
  };
  return read;
}

Result<FetchedSteps> StepFetcher::read_anew(const Planned& planned, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(
      const store::FetchedPieces stored,
      reader_.read_pieces(planned.entry, *planned.index, planned.position(), planned.places, call));
  BL_ASSIGN_OR_RETURN(StepBatch batch,
                      lay_out_anew({planned.stored(), planned.plan, options_.rank},
                                   planned.index->token_width, planned.places, stored.pieces));
  batch.step = planned.step;
  batch.producer = planned.entry.producer;
  BL_RETURN_IF_ERROR(check_rings(batch));
  for (const auto& buffer : stored.buffers) batch.fetched_bytes += buffer->size();
  FetchedSteps fetched;
  for (const auto& buffer : batch.buffers) fetched.held_bytes += buffer->size();
  fetched.steps.push_back(std::make_shared<const StepBatch>(std::move(batch)));
  return counted(std::move(fetched));
}

Status StepFetcher::explain(const Failed& failed, const Status& error, const CallOptions& call) {
  if (!error.is(ErrorKind::kCorruption) && !error.is(ErrorKind::kNotFound)) return error;
  rereads_.add();
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, feed_.refresh(call));
  if (failed.step < head->head.first_step) return trimmed(failed.step, head->head.first_step);
  if (!error.is(ErrorKind::kCorruption)) return error;
  return Status::corruption(fmt::format("step {} of rank {}: {}; {}", failed.step.value,
                                        options_.rank.value, error.message(), advice(failed.part)));
}

}  // namespace batchloom::client
