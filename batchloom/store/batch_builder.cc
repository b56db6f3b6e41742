// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/store/batch_index_codec.h"
#include "batchloom/store/batch_parts.h"
#include "batchloom/store/head.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/piece_content.h"
#include "batchloom/store/planned_run.h"
#include "batchloom/store/run_codec.h"
#include "batchloom/store/run_table.h"

namespace batchloom::store {
namespace {

/// A run before its place is known: offsets count from where its columns begin.
struct RunDraft {
  RunHeader header;
  PartList columns;
  std::vector<std::uint64_t> micro_batches;
};

/// A micro-batch's columns but the first, which goes straight to the draft.
struct ColumnsDraft {
  std::vector<PieceCounts> counts;
  Bytes next_tokens;
  Bytes labels;
  Bytes small;  ///< What one piece takes of both, in the order in which its CRC covers them.
  std::vector<ByteSpan> tensors;
};

class BatchBuilder {
 public:
  BatchBuilder(const BatchOptions& options, std::span<const StepContent> steps)
      : options_(options), steps_(steps) {}

  Result<BuiltBatch> build();

 private:
  Status check_options() const;
  Status check_step(std::uint32_t position) const;
  void prepare_steps();
  Result<RunRow> add_run(std::uint32_t position, model::HdpRank rank);
  RunDraft draft_run(std::uint32_t position, model::HdpRank rank);
  void add_micro_batch(std::uint32_t position, const model::MicroBatch& micro_batch,
                       RunDraft& draft);
  void add_piece(std::uint32_t position, const model::Piece& piece, RunDraft& draft,
                 ColumnsDraft& columns);
  Status add_index();
  BuiltBatch finish(const Bytes& run_table) &&;

  std::uint32_t step_count() const { return static_cast<std::uint32_t>(steps_.size()); }
  /// In the object, where header and run table come first.
  std::uint64_t offset() const {
    return first_run_offset(ranks_, step_count()) + list_.size_bytes();
  }

  const BatchOptions& options_;
  const std::span<const StepContent> steps_;
  std::uint32_t ranks_ = 0;
  std::vector<std::vector<std::vector<RunEvent>>> events_;  // By step and rank.
  std::vector<std::uint64_t> samples_digests_;              // By step.
  BatchIndexRows index_;
  PartList list_;  // From the first run on.
  std::uint64_t payload_bytes_ = 0;
};

Status BatchBuilder::check_options() const {
  BL_RETURN_IF_ERROR(validate_name("the producer", options_.identity.producer));
  if (options_.identity.term == Term(0)) return Status::invalid("a batch object of term 0");
  if (!is_token_width(static_cast<std::uint8_t>(options_.token_width))) {
    return Status::invalid(fmt::format("token ids of {} bytes; 2 or 4 are possible",
                                       token_bytes(options_.token_width)));
  }
  if (steps_.empty()) return Status::invalid("a batch object has at least 1 step");
  return check_origin(options_.origin);
}

/// "step 2, sample 0:0:7:0".
std::string name_sample(std::uint32_t position, const model::PlanSample& sample) {
  return fmt::format("step {}, sample {}", position, to_string(sample.id));
}

bool is_origin_of(const model::SampleMeta& origin, const model::PlanSample& sample) {
  return origin.id == sample.id && origin.tokens == sample.tokens &&
         origin.valid_labels == sample.valid_labels &&
         origin.first_position == sample.first_position;
}

Status BatchBuilder::check_step(std::uint32_t position) const {
  const StepContent& step = steps_[position];
  if (step.plan == nullptr) return Status::invalid(fmt::format("step {} has no plan", position));
  const model::StepPlan& plan = *step.plan;
  if (const Status checked = model::check_plan(plan); !checked.is_ok()) {
    return checked.with_context(fmt::format("step {}", position));
  }
  if (const std::uint64_t digest = model::plan_digest(plan); digest != plan.digest) {
    return Status::invalid(fmt::format("step {}: the plan's digest is {:016x}, it carries {:016x}",
                                       position, digest, plan.digest));
  }
  if (plan.ranks.size() != ranks_) {
    return Status::invalid(fmt::format("step {} is planned for {} ranks, step 0 for {}", position,
                                       plan.ranks.size(), ranks_));
  }
  if (step.samples.size() != plan.samples.size() || step.origins.size() != plan.samples.size()) {
    return Status::invalid(
        fmt::format("step {}: {} samples are planned, {} payloads and {} origins are given",
                    position, plan.samples.size(), step.samples.size(), step.origins.size()));
  }
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const model::PlanSample& sample = plan.samples[i];
    const Status content = check_content(sample, options_.token_width, step.samples[i]);
    if (!content.is_ok()) return content.with_context(name_sample(position, sample));
    if (sample.id.source.value >= options_.origin.sources.size()) {
      return Status::invalid(fmt::format("{}: its source is not among the {} that are named",
                                         name_sample(position, sample),
                                         options_.origin.sources.size()));
    }
    if (is_origin_of(step.origins[i], sample)) continue;
    return Status::invalid(fmt::format(
        "{}: its origin is that of {}, or tells other tokens, labels or positions than the plan",
        name_sample(position, sample), to_string(step.origins[i].id)));
  }
  return Status::ok();
}

/// Of `tokens`, some or all of the sample's.
std::uint32_t tokens_crc(const SampleContent& content, ByteSpan tokens) {
  const bool is_known = content.tokens_crc && tokens.size() == content.tokens.size();
  return is_known ? *content.tokens_crc : crc32c(tokens);
}

void BatchBuilder::prepare_steps() {
  index_.identity = options_.identity;
  index_.token_width = options_.token_width;
  index_.origin = &options_.origin;
  for (const StepContent& step : steps_) {
    events_.push_back(events_by_rank(*step.plan));
    samples_digests_.push_back(samples_digest(step.plan->samples));
    IndexStepRows& rows = index_.steps.emplace_back();
    rows.plan = step.plan;
    rows.origins = step.origins;
    rows.pieces.reserve(step.plan->pieces.size());
    list_.reserve(step.plan->pieces.size());
  }
}

void BatchBuilder::add_piece(std::uint32_t position, const model::Piece& piece, RunDraft& draft,
                             ColumnsDraft& columns) {
  const StepContent& step = steps_[position];
  const model::PlanSample& sample = step.plan->samples[piece.sample.value];
  const SampleContent& content = step.samples[piece.sample.value];
  const PieceContent cut = cut_piece(piece, options_.token_width, content);

  // Together: a CRC of few bytes costs as much as one of a few hundred.
  columns.small.resize(sizeof(std::uint32_t) + kLabelIntervalBytes * cut.labels.size());
  store_le(cut.next_token.value_or(0), columns.small.data());  // In 2 bytes: the lower ones.
  const std::size_t next_bytes = token_bytes(options_.token_width);
  std::byte* out = columns.small.data() + next_bytes;
  for (const LabelInterval& interval : cut.labels) {
    store_le(interval.begin, out);
    store_le(interval.end, out + sizeof(std::uint32_t));
    out += kLabelIntervalBytes;
  }
  const ByteSpan small(columns.small.data(), out);
  std::uint32_t crc = crc32c(small, tokens_crc(content, cut.tokens));
  payload_bytes_ += cut.tokens.size() + small.size();
  for (const SampleTensor& tensor : cut.tensors) {
    crc = crc32c(tensor.bytes, crc);
    payload_bytes_ += tensor.bytes.size();
    columns.tensors.push_back(tensor.bytes);
    draft.header.tensors.push_back({.token = tensor.token - piece.lo, .info = tensor.info});
  }
  const auto labels = small.begin() + static_cast<std::ptrdiff_t>(next_bytes);
  columns.next_tokens.insert(columns.next_tokens.end(), small.begin(), labels);
  columns.labels.insert(columns.labels.end(), labels, small.end());
  draft.columns.borrow(cut.tokens);

  const PieceFacts facts{.label_intervals = static_cast<std::uint32_t>(cut.labels.size()),
                         .tensors = static_cast<std::uint32_t>(cut.tensors.size()),
                         .all_labels = cut.all_labels,
                         .has_next_token = cut.next_token.has_value(),
                         .crc = crc};
  columns.counts.push_back(facts.counts(piece.tokens()));
  index_.steps[position].pieces.push_back(facts);
  draft.header.pieces.push_back({.sample = sample.id,
                                 .sample_tokens = sample.tokens,
                                 .lo = piece.lo,
                                 .hi = piece.hi,
                                 .first_position = sample.first_position,
                                 .facts = facts});
}

void BatchBuilder::add_micro_batch(std::uint32_t position, const model::MicroBatch& micro_batch,
                                   RunDraft& draft) {
  const model::StepPlan& plan = *steps_[position].plan;
  const model::Task& task = plan.tasks[micro_batch.task.value];
  const auto members = plan.members_of(task);
  draft.header.members.insert(draft.header.members.end(), members.begin(), members.end());
  draft.header.micro_batches.push_back({.task = micro_batch.task.value,
                                        .offload = task.offload,
                                        .members = task.members.size(),
                                        .pieces = micro_batch.pieces.size()});
  const std::uint64_t begin = draft.columns.size_bytes();
  draft.micro_batches.push_back(begin);

  ColumnsDraft columns;
  columns.counts.reserve(micro_batch.pieces.size());
  columns.next_tokens.reserve(micro_batch.pieces.size() * sizeof(std::uint32_t));
  draft.columns.reserve(micro_batch.pieces.size());
  draft.header.pieces.reserve(draft.header.pieces.size() + micro_batch.pieces.size());
  for (const model::Piece& piece : plan.pieces_of(micro_batch)) {
    add_piece(position, piece, draft, columns);
  }
  draft.columns.pad();
  draft.columns.own(ByteSpan(columns.next_tokens));
  draft.columns.pad();
  draft.columns.own(ByteSpan(columns.labels));
  draft.columns.pad();
  std::vector<std::uint64_t> sizes;
  sizes.reserve(columns.tensors.size());
  for (const ByteSpan tensor : columns.tensors) {
    draft.columns.borrow(tensor);
    draft.columns.pad();
    sizes.push_back(tensor.size());
  }
  const MicroBatchColumns expected = lay_out(begin, options_.token_width, columns.counts, sizes);
  BL_CHECK(expected.end == draft.columns.size_bytes(), "columns lie where readers look for them");
}

RunDraft BatchBuilder::draft_run(std::uint32_t position, model::HdpRank rank) {
  const model::StepPlan& plan = *steps_[position].plan;
  RunDraft draft;
  draft.header.identity = options_.identity;
  draft.header.position = position;
  draft.header.rank = rank;
  draft.header.token_width = options_.token_width;
  draft.header.samples_digest = samples_digests_[position];
  draft.header.plan_digest = plan.digest;
  draft.header.global_valid_labels = plan.global_valid_labels;
  draft.header.events = std::move(events_[position][rank.value]);
  IndexStepRows& rows = index_.steps[position];
  for (const model::MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
    add_micro_batch(position, micro_batch, draft);
  }
  rows.tensors.insert(rows.tensors.end(), draft.header.tensors.begin(), draft.header.tensors.end());
  return draft;
}

Result<RunRow> BatchBuilder::add_run(std::uint32_t position, model::HdpRank rank) {
  RunDraft draft = draft_run(position, rank);
  const std::uint64_t header_bound = encoded_bound(draft.header);
  if (header_bound > kSectionMaxBytes ||
      column_aligned(header_bound) + draft.columns.size_bytes() > kRunMaxBytes) {
    return Status::invalid(fmt::format(
        "step {}: the run of rank {} has {} pieces and {} bytes of columns; header and columns may "
        "have {} and {} bytes: put less into a step",
        position, rank.value, draft.header.pieces.size(), draft.columns.size_bytes(),
        kSectionMaxBytes, kRunMaxBytes));
  }
  Encoded header = encode_run_header(draft.header);
  const std::uint64_t begin = offset();
  list_.own(std::move(header.bytes));
  list_.pad();
  const std::uint64_t columns_begin = offset();
  list_.append(std::move(draft.columns));
  for (const std::uint64_t micro_batch : draft.micro_batches) {
    index_.steps[position].micro_batches.push_back(columns_begin + micro_batch);
  }
  return RunRow{.offset_bytes = begin,
                .size_bytes = static_cast<std::uint32_t>(offset() - begin),
                .header_crc = header.crc};
}

Status BatchBuilder::add_index() {
  const std::uint64_t bound = encoded_bound(index_);
  if (bound > kSectionMaxBytes) {
    return Status::invalid(
        fmt::format("the index of {} steps takes up to {} bytes, at most {} are "
                    "possible: put less into an object",
                    steps_.size(), bound, kSectionMaxBytes));
  }
  const std::uint64_t begin = offset();
  Bytes index = encode_batch_index(index_);
  const Slice place{.offset_bytes = begin, .size_bytes = index.size()};
  list_.own(std::move(index));
  list_.own(ByteSpan(encode_batch_footer(options_.identity.stream, place)));
  return Status::ok();
}

BuiltBatch BatchBuilder::finish(const Bytes& run_table) && {
  const BatchContext context{.key = {},
                             .identity = options_.identity,
                             .steps = step_count(),
                             .ranks = ranks_,
                             .size_bytes = offset()};
  PartList front;
  front.own(ByteSpan(encode_batch_header(
      context, {.token_width = options_.token_width, .payload_bytes = payload_bytes_})));
  front.own(ByteSpan(run_table));
  front.pad();

  BuiltBatch batch;
  batch.size_bytes = context.size_bytes;
  for (PartList* list : {&front, &list_}) {
    std::move(*list).finish(batch.parts, batch.owned);
  }
  batch.payload_bytes = payload_bytes_;
  batch.steps = step_count();
  batch.ranks = ranks_;
  if (std::uint64_t{ranks_} * step_count() <= kInlineRunRows) batch.run_table = run_table;
  return batch;
}

Result<BuiltBatch> BatchBuilder::build() {
  BL_RETURN_IF_ERROR(check_options());
  if (steps_[0].plan != nullptr) ranks_ = steps_[0].plan->topology.hdp_size();
  if (steps_.size() > kRunsMax || steps_.size() * ranks_ > kRunsMax) {
    return Status::invalid(fmt::format("{} steps for {} ranks; an object has at most {} runs",
                                       steps_.size(), ranks_, kRunsMax));
  }
  for (std::uint32_t position = 0; position < step_count(); ++position) {
    BL_RETURN_IF_ERROR(check_step(position));
  }
  prepare_steps();
  Bytes run_table;
  for (model::HdpRank rank(0); rank.value < ranks_; ++rank) {
    std::vector<RunRow> rows;
    for (std::uint32_t position = 0; position < step_count(); ++position) {
      BL_ASSIGN_OR_RETURN(const RunRow row, add_run(position, rank));
      rows.push_back(row);
    }
    const Bytes encoded = encode_rank_rows(options_.identity, rank, rows);
    run_table.insert(run_table.end(), encoded.begin(), encoded.end());
  }
  BL_RETURN_IF_ERROR(add_index());
  return std::move(*this).finish(run_table);
}

}  // namespace

Result<BuiltBatch> build_batch(const BatchOptions& options, std::span<const StepContent> steps) {
  return BatchBuilder(options, steps).build();
}

}  // namespace batchloom::store
