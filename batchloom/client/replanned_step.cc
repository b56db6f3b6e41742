// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/replanned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using model::Piece;
using model::PlanSample;
using model::SampleIndex;
using model::StepPlan;
using store::LabelInterval;
using store::RunMicroBatch;
using store::RunPiece;

/// A stored piece by where its tokens belong.
struct Stored {
  SampleIndex sample;
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;
  std::size_t place = 0;  ///< In the vector that it was made from.
};

/// By sample, then by token.
std::vector<Stored> in_token_order(std::vector<Stored> pieces) {
  std::ranges::sort(pieces, {},
                    [](const Stored& piece) { return std::pair(piece.sample, piece.lo); });
  return pieces;
}

/// The first of `pieces` (in token order) that may hold the sample's token `at` or a later one.
std::vector<Stored>::const_iterator first_at(const std::vector<Stored>& pieces, SampleIndex sample,
                                             std::uint32_t at) {
  const auto after = std::ranges::upper_bound(
      pieces, std::pair(sample, at), {},
      [](const Stored& piece) { return std::pair(piece.sample, piece.lo); });
  if (after == pieces.begin()) return after;
  const auto before = std::prev(after);
  return before->sample == sample && before->hi > at ? before : after;
}

std::span<const Piece> pieces_of_rank(const StepPlan& plan, HdpRank rank) {
  const auto micro_batches = plan.micro_batches_of(rank);
  if (micro_batches.empty()) return {};
  const std::uint32_t begin = micro_batches.front().pieces.begin;
  return std::span(plan.pieces).subspan(begin, micro_batches.back().pieces.end - begin);
}

Status check_samples(const StepPlan& stored, const StepPlan& plan) {
  if (plan.samples.size() != stored.samples.size()) {
    return Status::invalid(fmt::format("the new plan has {} samples; the stored step has {}",
                                       plan.samples.size(), stored.samples.size()));
  }
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const PlanSample& planned = plan.samples[i];
    const PlanSample& sample = stored.samples[i];
    if (planned == sample) continue;
    const auto text = [](const PlanSample& s) {
      return fmt::format("{} of {} tokens, {} valid labels, first position {}", to_string(s.id),
                         s.tokens, s.valid_labels, s.first_position);
    };
    return Status::invalid(fmt::format("sample number {} of the new plan is {}; stored is {}", i,
                                       text(planned), text(sample)));
  }
  return Status::ok();
}

/// A stretch of a stored piece that becomes part of a new one; [lo, hi) are tokens of the sample.
struct Cut {
  const RunPiece* from = nullptr;
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;
};

/// A new piece and what it is joined from, in token order.
struct Joint {
  Piece piece;
  std::vector<Cut> cuts;
};

/// Calls `visit` for every tensor of the cut.
template <class Visit>
void for_each_tensor(const Cut& cut, Visit visit) {
  for (const RunPiece::Tensor& tensor : cut.from->tensors) {
    const std::uint32_t token = cut.from->lo + tensor.token;
    if (token >= cut.lo && token < cut.hi) visit(tensor, token);
  }
}

std::uint32_t existing_labels(const RunPiece& piece) {
  return store::existing_labels(piece.hi - piece.lo, piece.has_next_token);
}

/// Adds the cut's label intervals to those of a piece that begins at `lo`.
void add_labels(const Cut& cut, std::uint32_t lo, std::vector<LabelInterval>& labels) {
  const std::vector<LabelInterval> all = {{0, existing_labels(*cut.from)}};
  for (const LabelInterval& interval : cut.from->all_labels ? all : cut.from->labels) {
    const std::uint32_t begin = std::max(cut.lo, cut.from->lo + interval.begin);
    const std::uint32_t end = std::min(cut.hi, cut.from->lo + interval.end);
    if (begin >= end) continue;
    if (!labels.empty() && labels.back().end == begin - lo) {
      labels.back().end = end - lo;
    } else {
      labels.push_back({begin - lo, end - lo});
    }
  }
}

/// A micro-batch's pieces, and where their bytes will lie in the rank's buffer.
struct Placed {
  std::vector<Joint> joints;
  std::vector<store::PieceCounts> counts;  ///< By joint.
  store::MicroBatchColumns columns;
};

/// Builds a rank's part of a step in two passes: what each piece is joined from and where it will
/// lie, then the bytes.
class Layout {
 public:
  Layout(const Replan& replan, store::TokenWidth width, std::span<const std::uint32_t> places,
         std::span<const RunPiece> pieces)
      : replan_(replan), width_(width), token_bytes_(store::token_bytes(width)), pieces_(pieces) {
    std::vector<Stored> stored;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Piece& piece = replan.stored.pieces[places[i]];
      stored.push_back({piece.sample, piece.lo, piece.hi, i});
    }
    stored_ = in_token_order(std::move(stored));
  }

  Status place() {
    for (const model::MicroBatch& micro_batch : replan_.plan.micro_batches_of(replan_.rank)) {
      Placed placed;
      for (const Piece& piece : replan_.plan.pieces_of(micro_batch)) {
        BL_ASSIGN_OR_RETURN(Joint joint, join(piece));
        placed.joints.push_back(std::move(joint));
      }
      find_columns(placed);
      micro_batches_.push_back(std::move(placed));
    }
    return Status::ok();
  }

  /// Precondition: place() was ok.
  void fill(StepBatch& batch) {
    buffer_.resize(size_bytes_);
    const auto planned = replan_.plan.micro_batches_of(replan_.rank);
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const model::Task& task = replan_.plan.tasks[planned[i].task.value];
      const auto ring = replan_.plan.members_of(task);
      batch.micro_batches.push_back({.task = planned[i].task.value,
                                     .offload = task.offload,
                                     .ring = {ring.begin(), ring.end()},
                                     .pieces = fill(micro_batches_[i])});
    }
    batch.buffers = {std::make_shared<const Bytes>(std::move(buffer_))};
  }

 private:
  Result<Joint> join(const Piece& piece) const {
    Joint joint{.piece = piece, .cuts = {}};
    auto next = first_at(stored_, piece.sample, piece.lo);
    for (std::uint32_t at = piece.lo; at < piece.hi; ++next) {
      if (next == stored_.end() || next->sample != piece.sample || next->lo > at ||
          next->hi <= at) {
        return Status::corruption(
            fmt::format("token {} of sample {} is in no stored piece; see `batchloom store verify`",
                        at, to_string(replan_.plan.samples[piece.sample.value].id)));
      }
      const std::uint32_t hi = std::min(piece.hi, next->hi);
      joint.cuts.push_back({&pieces_[next->place], at, hi});
      at = hi;
    }
    return joint;
  }

  /// Label intervals get no column: nobody reads them but through their pieces.
  void find_columns(Placed& placed) {
    std::vector<std::uint64_t> tensor_sizes;
    for (const Joint& joint : placed.joints) {
      const std::size_t before = tensor_sizes.size();
      for (const Cut& cut : joint.cuts) {
        for_each_tensor(cut, [&](const RunPiece::Tensor& tensor, std::uint32_t) {
          tensor_sizes.push_back(tensor.bytes.size());
        });
      }
      placed.counts.push_back(
          {.tokens = joint.piece.tokens(),
           .label_intervals = 0,
           .tensors = static_cast<std::uint32_t>(tensor_sizes.size() - before)});
    }
    placed.columns = store::lay_out(size_bytes_, width_, placed.counts, tensor_sizes);
    size_bytes_ = placed.columns.end;
  }

  std::vector<RunPiece> fill(const Placed& placed) {
    std::vector<RunPiece> pieces;
    store::PieceWalk walk(placed.columns, width_);
    for (std::size_t i = 0; i < placed.joints.size(); ++i) {
      const store::PieceSlices slices = walk.next(placed.counts[i]);
      RunPiece piece = begin_piece(placed.joints[i].piece);
      fill_tokens(placed.joints[i], slices, piece);
      fill_labels(placed.joints[i], piece);
      fill_tensors(placed.joints[i], slices, piece);
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  RunPiece begin_piece(const Piece& planned) const {
    const PlanSample& sample = replan_.plan.samples[planned.sample.value];
    RunPiece piece;
    piece.sample = sample.id;
    piece.sample_tokens = sample.tokens;
    piece.lo = planned.lo;
    piece.hi = planned.hi;
    piece.first_position = sample.first_position;
    return piece;
  }

  void fill_tokens(const Joint& joint, const store::PieceSlices& slices, RunPiece& piece) {
    std::uint64_t at = slices.tokens.offset_bytes;
    for (const Cut& cut : joint.cuts) {
      const ByteSpan part = tokens_of(*cut.from, cut.lo, cut.hi);
      write(part, at);
      at += part.size();
    }
    piece.tokens = view(slices.tokens);
    const auto& [from, lo, hi] = joint.cuts.back();
    const bool ends_inside = hi < from->hi;
    piece.has_next_token = ends_inside || from->has_next_token;
    write(ends_inside ? tokens_of(*from, hi, hi + 1) : from->next_token,
          slices.next_token.offset_bytes);
    piece.next_token = view(slices.next_token);
  }

  static void fill_labels(const Joint& joint, RunPiece& piece) {
    for (const Cut& cut : joint.cuts) add_labels(cut, piece.lo, piece.labels);
    std::uint32_t labels = 0;
    for (const LabelInterval& interval : piece.labels) labels += interval.end - interval.begin;
    piece.all_labels = labels == existing_labels(piece);
    if (piece.all_labels) piece.labels.clear();
  }

  void fill_tensors(const Joint& joint, const store::PieceSlices& slices, RunPiece& piece) {
    for (const Cut& cut : joint.cuts) {
      for_each_tensor(cut, [&](const RunPiece::Tensor& tensor, std::uint32_t token) {
        const store::Slice& slice = slices.tensors[piece.tensors.size()];
        write(tensor.bytes, slice.offset_bytes);
        piece.tensors.push_back(
            {.token = token - piece.lo, .info = tensor.info, .bytes = view(slice)});
      });
    }
  }

  /// Tokens [lo, hi) of the sample, which the piece holds.
  ByteSpan tokens_of(const RunPiece& piece, std::uint32_t lo, std::uint32_t hi) const {
    return piece.tokens.subspan((lo - piece.lo) * token_bytes_, (hi - lo) * token_bytes_);
  }
  void write(ByteSpan bytes, std::uint64_t at) {
    std::ranges::copy(bytes, buffer_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  ByteSpan view(const store::Slice& slice) const {
    return ByteSpan(buffer_).subspan(slice.offset_bytes, slice.size_bytes);
  }

  const Replan& replan_;
  const store::TokenWidth width_;
  const std::size_t token_bytes_;
  std::span<const RunPiece> pieces_;
  std::vector<Stored> stored_;
  std::vector<Placed> micro_batches_;
  std::uint64_t size_bytes_ = 0;
  Bytes buffer_;  // Of its full size before spans point into it.
};

/// The plan's events that are the rank's, in their order.
std::vector<store::RunEvent> events_of(const StepPlan& plan, HdpRank rank) {
  std::map<model::TaskIndex, std::uint32_t> micro_batch_of;
  for (const model::MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
    micro_batch_of.emplace(micro_batch.task, static_cast<std::uint32_t>(micro_batch_of.size()));
  }
  std::vector<store::RunEvent> events;
  for (const model::Event& event : plan.events) {
    const auto found = micro_batch_of.find(event.task);
    if (found != micro_batch_of.end()) events.push_back({found->second, event.phase});
  }
  return events;
}

}  // namespace

Status check_replan(const Replan& replan) {
  BL_RETURN_IF_ERROR(check_samples(replan.stored, replan.plan));
  BL_RETURN_IF_ERROR(model::check_plan(replan.plan));
  if (replan.rank.value < replan.plan.ranks.size()) return Status::ok();
  return Status::invalid(fmt::format("rank {} is not in the new plan, which has {} HDP ranks",
                                     replan.rank.value, replan.plan.ranks.size()));
}

std::vector<std::uint32_t> overlapping_pieces(const Replan& replan) {
  std::vector<Stored> all;
  for (std::size_t i = 0; i < replan.stored.pieces.size(); ++i) {
    const Piece& piece = replan.stored.pieces[i];
    all.push_back({piece.sample, piece.lo, piece.hi, i});
  }
  all = in_token_order(std::move(all));
  std::vector<std::uint32_t> places;
  for (const Piece& piece : pieces_of_rank(replan.plan, replan.rank)) {
    for (auto next = first_at(all, piece.sample, piece.lo);
         next != all.end() && next->sample == piece.sample && next->lo < piece.hi; ++next) {
      places.push_back(static_cast<std::uint32_t>(next->place));
    }
  }
  std::ranges::sort(places);
  const auto repeated = std::ranges::unique(places);
  places.erase(repeated.begin(), repeated.end());
  return places;
}

Result<StepBatch> lay_out_anew(const Replan& replan, store::TokenWidth token_width,
                               std::span<const std::uint32_t> places,
                               std::span<const RunPiece> pieces) {
  Layout layout(replan, token_width, places, pieces);
  BL_RETURN_IF_ERROR(layout.place());
  StepBatch batch;
  batch.token_width = token_width;
  batch.samples_digest = store::samples_digest(replan.plan.samples);
  batch.plan_digest = model::plan_digest(replan.plan);
  batch.global_valid_labels = replan.plan.global_valid_labels;
  layout.fill(batch);
  batch.events = events_of(replan.plan, replan.rank);
  return batch;
}

}  // namespace batchloom::client
