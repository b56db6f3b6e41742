// SPDX-License-Identifier: Apache-2.0
// The index. What a decoded one promises:
//
//   1. It is of the object meant, has its steps, and each plan its ranks.
//   2. Every plan is one that check_plan() accepts; origins, micro-batches and pieces have a row
//      each, and patches and tensors are all owned.
//   3. Micro-batches lie rank by rank, within a rank step by step, in the order of the plan; within
//      a run one begins where the one before ends, and before a run's first there is room for its
//      header. The last one ends where the index begins, so that every slice lies among the runs.
//   4. No two rows share bytes of the payload: what is decoded is never much larger than what was
//      stored. (FlatBuffers would allow a thousand steps to refer to one large plan.)
#include "batchloom/store/batch_index.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_codec.h"
#include "batchloom/store/batch_object_generated.h"
#include "batchloom/store/codec_rows.h"
#include "batchloom/store/piece_rows.h"
#include "batchloom/store/run_table.h"

namespace batchloom::store {
namespace {

std::string_view view(const flatbuffers::String& text) {
  return {text.c_str(), text.size()};
}

/// Turns the verified table into an index, part by part; stops at the first broken rule.
class IndexDecoder {
 public:
  IndexDecoder(const BatchContext& object, const Origin& origin, std::uint64_t index_begin,
               ByteSpan payload, const fb::Index& table)
      : object_(object),
        origin_(origin),
        index_begin_(index_begin),
        budget_(payload.size()),
        table_(table) {}

  Result<BatchIndex> decode() {
    BL_RETURN_IF_ERROR(decode_identity());
    BL_RETURN_IF_ERROR(decode_origin());
    if (object_.steps == 0 || table_.steps()->size() != object_.steps) {
      return origin_.corrupt(table_.steps(), fmt::format("has {} steps, its entry says {}",
                                                         table_.steps()->size(), object_.steps));
    }
    for (const fb::IndexStep* step : *table_.steps()) BL_RETURN_IF_ERROR(decode_step(*step));
    BL_RETURN_IF_ERROR(locate_pieces());
    return std::move(index_);
  }

 private:
  Status decode_identity();
  Status decode_origin();
  Result<std::string> decode_name(const flatbuffers::String& name) const;
  Status check_vectors(const fb::IndexStep& step);
  Status decode_step(const fb::IndexStep& step);
  Status decode_plan_of(const fb::IndexStep& step, model::StepPlan& plan) const;
  Status decode_origins(const fb::IndexStep& step, IndexedStep& decoded) const;
  Status decode_facts_of(const fb::IndexStep& step);
  Status locate_pieces();
  Status locate_run(std::uint32_t position, model::HdpRank rank);
  std::uint64_t locate_micro_batch(std::uint32_t position, const model::MicroBatch& micro_batch,
                                   std::uint64_t begin);

  const BatchContext& object_;
  const Origin& origin_;
  const std::uint64_t index_begin_;
  RowCounter budget_;
  const fb::Index& table_;
  BatchIndex index_;
  std::vector<std::vector<PieceFacts>> facts_;  // By step, then by plan.pieces.
  std::uint64_t located_end_ = 0;               // Of the runs located so far.
};

Status IndexDecoder::decode_identity() {
  BL_RETURN_IF_ERROR(check_encoding({.key = object_.key}, index_begin_ + kFrameBytes,
                                    table_.token_bytes(), table_.codec()));
  index_.identity = {.stream = object_.identity.stream,
                     .producer = std::string(view(*table_.producer()).substr(0, 64)),
                     .term = Term(table_.term()),
                     .seq = Seq(table_.seq())};
  index_.token_width = static_cast<TokenWidth>(table_.token_bytes());
  if (index_.identity == object_.identity) return Status::ok();
  return origin_.corrupt(&table_, fmt::format("is of {}, expected {}", to_string(index_.identity),
                                              to_string(object_.identity)));
}

Result<std::string> IndexDecoder::decode_name(const flatbuffers::String& name) const {
  if (name.size() <= kOriginNameMaxBytes) return name.str();
  return origin_.corrupt(&name, fmt::format("a name of {} bytes, at most {} can be", name.size(),
                                            kOriginNameMaxBytes));
}

Status IndexDecoder::decode_origin() {
  BatchOrigin& origin = index_.origin;
  for (const fb::IndexSource* source : *table_.sources()) {
    if (!budget_.take(source->name()->size())) {
      return origin_.corrupt(table_.sources(), "sources share their names");
    }
    BL_ASSIGN_OR_RETURN(std::string name, decode_name(*source->name()));
    origin.sources.push_back({.name = std::move(name), .digest = source->digest()});
  }
  BL_ASSIGN_OR_RETURN(origin.planner, decode_name(*table_.planner()));
  BL_ASSIGN_OR_RETURN(origin.cost_model, decode_name(*table_.cost_model()));
  origin.planner_digest = table_.planner_digest();
  origin.capacity_tokens = table_.capacity_tokens();
  origin.max_sample_tokens = table_.max_sample_tokens();
  origin.min_share_tokens = table_.min_share_tokens();
  origin.offload = table_.offload();
  origin.cost_table = decode_bytes(table_.cost_table());
  return Status::ok();
}

Status IndexDecoder::check_vectors(const fb::IndexStep& step) {
  BL_RETURN_IF_ERROR(check_alignment(origin_, *step.origins()));
  BL_RETURN_IF_ERROR(check_alignment(origin_, *step.pieces()));
  const auto& micro_batches = *step.micro_batches();
  BL_RETURN_IF_ERROR(check_alignment(origin_,
                                     reinterpret_cast<const std::uint64_t*>(micro_batches.Data()),
                                     &micro_batches, micro_batches.size()));
  const std::uint64_t stored = step.plan()->size() +
                               sizeof(fb::IndexOrigin) * step.origins()->size() +
                               sizeof(std::uint32_t) * std::uint64_t{step.patches()->size()} +
                               sizeof(std::uint64_t) * std::uint64_t{micro_batches.size()} +
                               sizeof(fb::IndexPiece) * step.pieces()->size() +
                               sizeof(std::uint32_t) * std::uint64_t{step.tensors()->size()};
  if (budget_.take(stored)) return Status::ok();
  return origin_.corrupt(&step, "steps share their rows");
}

Status IndexDecoder::decode_plan_of(const fb::IndexStep& step, model::StepPlan& plan) const {
  const auto* data = reinterpret_cast<const std::byte*>(step.plan()->data());
  auto decoded = model::decode_plan(ByteSpan(data, step.plan()->size()));
  if (!decoded.is_ok()) return origin_.at(step.plan(), decoded.status());
  plan = std::move(decoded).value();
  if (const Status checked = model::check_plan(plan); !checked.is_ok()) {
    return origin_.corrupt(step.plan(), checked.message());
  }
  if (plan.ranks.size() != object_.ranks) {
    return origin_.corrupt(step.plan(), fmt::format("a plan for {} ranks, the entry says {}",
                                                    plan.ranks.size(), object_.ranks));
  }
  const auto fits = [](const auto& rows, const auto& planned) {
    return rows.size() == planned.size();
  };
  if (fits(*step.origins(), plan.samples) && fits(*step.micro_batches(), plan.micro_batches) &&
      fits(*step.pieces(), plan.pieces)) {
    return Status::ok();
  }
  return origin_.corrupt(
      &step,
      fmt::format("rows for {} samples, {} micro-batches and {} pieces; the plan has {}, {} "
                  "and {}",
                  step.origins()->size(), step.micro_batches()->size(), step.pieces()->size(),
                  plan.samples.size(), plan.micro_batches.size(), plan.pieces.size()));
}

Status IndexDecoder::decode_origins(const fb::IndexStep& step, IndexedStep& decoded) const {
  RowCounter patches(step.patches()->size());
  decoded.origins.reserve(decoded.plan.samples.size());
  for (const model::PlanSample& sample : decoded.plan.samples) {
    const auto place = static_cast<flatbuffers::uoffset_t>(decoded.origins.size());
    const fb::IndexOrigin* row = step.origins()->Get(place);
    model::SampleMeta& origin = decoded.origins.emplace_back();
    origin.id = sample.id;
    if (sample.id.source.value >= index_.origin.sources.size()) {
      return origin_.corrupt(row, fmt::format("sample {} is of none of the {} sources",
                                              to_string(sample.id), index_.origin.sources.size()));
    }
    origin.tokens = sample.tokens;
    origin.valid_labels = sample.valid_labels;
    origin.first_position = sample.first_position;
    origin.place = {.shard = model::ShardIndex(row->shard()),
                    .offset_bytes = row->offset_bytes(),
                    .size_bytes = row->size_bytes()};
    const std::uint64_t first = patches.taken();
    if (!patches.take(row->patches())) {
      return origin_.corrupt(
          row, fmt::format("sample {} with {} patches; {} are left", to_string(sample.id),
                           row->patches(), step.patches()->size() - first));
    }
    const auto begin = step.patches()->begin() + static_cast<flatbuffers::uoffset_t>(first);
    origin.image_patches.assign(begin, begin + row->patches());
  }
  if (patches.all_taken()) return Status::ok();
  return origin_.corrupt(step.patches(), "patches that belong to no sample");
}

Status IndexDecoder::decode_facts_of(const fb::IndexStep& step) {
  const model::StepPlan& plan = index_.steps.back().plan;
  std::vector<IndexedPiece>& pieces = index_.pieces.emplace_back(plan.pieces.size());
  std::vector<PieceFacts>& all_facts = facts_.emplace_back();
  all_facts.reserve(plan.pieces.size());
  BL_ASSIGN_OR_RETURN(const std::vector<PieceTensor> tensors,
                      decode_tensors(origin_, *step.tensors()));
  RowCounter owned(tensors.size());
  for (std::size_t i = 0; i < plan.pieces.size(); ++i) {
    const fb::IndexPiece* row = step.pieces()->Get(static_cast<flatbuffers::uoffset_t>(i));
    BL_ASSIGN_OR_RETURN(const PieceFacts facts,
                        decode_facts(origin_, row, plan.pieces[i].tokens(), row->flags(),
                                     {.label_intervals = row->label_intervals(),
                                      .tensors = row->tensors(),
                                      .crc = row->crc()}));
    const std::uint64_t first = owned.taken();
    if (!owned.take(facts.tensors)) {
      return origin_.corrupt(row, fmt::format("a piece with {} tensors; {} are left", facts.tensors,
                                              tensors.size() - first));
    }
    const auto own = std::span(tensors).subspan(first, facts.tensors);
    BL_RETURN_IF_ERROR(check_tensor_tokens(origin_, row, plan.pieces[i].tokens(), own));
    pieces[i].has_next_token = facts.has_next_token;
    pieces[i].all_labels = facts.all_labels;
    pieces[i].tensors.assign(own.begin(), own.end());
    pieces[i].crc = facts.crc;
    all_facts.push_back(facts);
  }
  if (owned.all_taken()) return Status::ok();
  return origin_.corrupt(step.tensors(), "tensors that belong to no piece");
}

Status IndexDecoder::decode_step(const fb::IndexStep& step) {
  BL_RETURN_IF_ERROR(check_vectors(step));
  IndexedStep& decoded = index_.steps.emplace_back();
  BL_RETURN_IF_ERROR(decode_plan_of(step, decoded.plan));
  BL_RETURN_IF_ERROR(decode_origins(step, decoded));
  return decode_facts_of(step);
}

/// Rule 3.
Status IndexDecoder::locate_pieces() {
  located_end_ = first_run_offset(object_.ranks, object_.steps);
  for (model::HdpRank rank(0); rank.value < object_.ranks; ++rank) {
    for (std::uint32_t position = 0; position < object_.steps; ++position) {
      BL_RETURN_IF_ERROR(locate_run(position, rank));
    }
  }
  // A last run without micro-batches may end anywhere: its size stands in the run table alone.
  const bool known = index_.steps.back().plan.ranks.back().size() > 0;
  if (!known || located_end_ == index_begin_) return Status::ok();
  return origin_.corrupt(&table_, fmt::format("the runs end at byte {}, the index begins at {}",
                                              located_end_, index_begin_));
}

Status IndexDecoder::locate_run(std::uint32_t position, model::HdpRank rank) {
  const model::StepPlan& plan = index_.steps[position].plan;
  const auto& begins = *table_.steps()->Get(position)->micro_batches();
  const model::IndexRange range = plan.ranks[rank.value];
  // The header stands between: a run whose columns are not known has at least that.
  std::uint64_t least = located_end_ + column_aligned(kFrameBytes);
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const std::uint64_t begin = begins.Get(i);
    const bool follows = i == range.begin ? begin >= least : begin == least;
    if (!follows || begin % kColumnAlignBytes != 0 || begin > index_begin_) {
      return origin_.corrupt(
          &begins, fmt::format("micro-batch {} of step {}, rank {}, at byte {}; expected {} byte "
                               "{}, before byte {}",
                               i - range.begin, position, rank.value, begin,
                               i == range.begin ? "from" : "at", least, index_begin_));
    }
    least = locate_micro_batch(position, plan.micro_batches[i], begin);
  }
  if (least > index_begin_) {
    return origin_.corrupt(&begins, fmt::format("step {}, rank {} ends at byte {}, the runs at {}",
                                                position, rank.value, least, index_begin_));
  }
  located_end_ = least;
  return Status::ok();
}

/// Where it ends. Its pieces may lie beyond the runs: that is for the caller to refuse.
std::uint64_t IndexDecoder::locate_micro_batch(std::uint32_t position,
                                               const model::MicroBatch& micro_batch,
                                               std::uint64_t begin) {
  const std::span<const model::Piece> planned = index_.steps[position].plan.pieces_of(micro_batch);
  std::vector<PieceCounts> counts;
  std::vector<std::uint64_t> sizes;
  counts.reserve(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const std::size_t piece = micro_batch.pieces.begin + i;
    counts.push_back(facts_[position][piece].counts(planned[i].tokens()));
    const std::vector<std::uint64_t> own = tensor_sizes(index_.pieces[position][piece].tensors);
    sizes.insert(sizes.end(), own.begin(), own.end());
  }
  const MicroBatchColumns columns = lay_out(begin, index_.token_width, counts, sizes);
  PieceWalk walk(columns, index_.token_width);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    index_.pieces[position][micro_batch.pieces.begin + i].slices = walk.next(counts[i]);
  }
  return columns.end;
}

}  // namespace

Result<BatchIndex> decode_batch_index(const BatchContext& object, std::uint64_t offset_bytes,
                                      ByteSpan bytes) {
  const FrameContext context{.key = object.key,
                             .kind = ObjectKind::kBatchIndex,
                             .uuid = &object.identity.stream,
                             .part = "index",
                             .begin_bytes = offset_bytes};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, bytes));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Index>(context, frame.payload()));
  const Origin origin(context, frame.payload().data());
  return IndexDecoder(object, origin, offset_bytes, frame.payload(), *table).decode();
}

}  // namespace batchloom::store
