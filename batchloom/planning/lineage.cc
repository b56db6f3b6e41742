// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/lineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "batchloom/model/plan_check.h"

namespace batchloom::planning {

using model::HdpRank;
using model::Rank;
using model::SampleId;
using model::SampleIndex;

Result<Lineage> Lineage::create(const model::StepPlan& plan, const PlaceTree& places,
                                const PictureAssignment* pictures) {
  BL_RETURN_IF_ERROR(model::check_plan_structure(plan));
  if (places.topology() != plan.topology) {
    return Status::invalid(fmt::format("lineage: the plan is of {}, the place tree of {}",
                                       to_string(plan.topology), to_string(places.topology())));
  }
  Lineage lineage(plan, places, pictures);
  if (pictures != nullptr) BL_RETURN_IF_ERROR(lineage.check_pictures_exist());
  lineage.index();
  for (std::size_t i = 1; i < lineage.by_id_.size(); ++i) {
    const SampleId& id = plan.samples[lineage.by_id_[i].value].id;
    if (plan.samples[lineage.by_id_[i - 1].value].id == id) {
      return Status::invalid(fmt::format("lineage: sample {} is in the plan twice", to_string(id)));
    }
  }
  return lineage;
}

Status Lineage::check_pictures_exist() const {
  if (pictures_->buckets != bucket_count(plan_->topology, pictures_->spread)) {
    return Status::invalid(fmt::format("lineage: pictures on {} buckets, of which {} has {}",
                                       pictures_->buckets, to_string(plan_->topology),
                                       bucket_count(plan_->topology, pictures_->spread)));
  }
  for (const PlacedPicture& picture : pictures_->pictures) {
    if (picture.sample.value < plan_->samples.size() && picture.bucket < pictures_->buckets) {
      continue;
    }
    return Status::invalid(fmt::format("lineage: a picture of sample {} of {}, in bucket {} of {}",
                                       picture.sample.value, plan_->samples.size(), picture.bucket,
                                       pictures_->buckets));
  }
  return Status::ok();
}

void Lineage::index() {
  for (std::uint32_t i = 0; i < plan_->samples.size(); ++i) by_id_.emplace_back(i);
  std::ranges::sort(by_id_, {}, [this](SampleIndex at) { return plan_->samples[at.value].id; });
  pieces_.reserve(plan_->pieces.size());
  for (HdpRank slice; slice.value < plan_->ranks.size(); ++slice) {
    const auto micro_batches = plan_->micro_batches_of(slice);
    for (std::uint32_t i = 0; i < micro_batches.size(); ++i) {
      const model::IndexRange range = micro_batches[i].pieces;
      for (std::uint32_t piece = range.begin; piece < range.end; ++piece) {
        pieces_.push_back({plan_->pieces[piece].sample, slice, i, piece});
      }
    }
  }
  std::ranges::sort(pieces_);
  if (pictures_ == nullptr) return;
  pictures_by_sample_.resize(pictures_->pictures.size());
  std::iota(pictures_by_sample_.begin(), pictures_by_sample_.end(), 0U);
  std::ranges::stable_sort(pictures_by_sample_, {},
                           [this](std::uint32_t at) { return pictures_->pictures[at].sample; });
}

SampleLineage Lineage::lineage_of(SampleIndex sample) const {
  SampleLineage lineage{.sample = plan_->samples[sample.value], .holdings = {}, .pictures = {}};
  for (const Place& place : std::ranges::equal_range(pieces_, sample, {}, &Place::sample)) {
    const bool goes_on = !lineage.holdings.empty() &&
                         lineage.holdings.back().slice == place.slice &&
                         lineage.holdings.back().micro_batch == place.micro_batch;
    if (!goes_on) {
      const model::MicroBatch& micro_batch =
          plan_->micro_batches_of(place.slice)[place.micro_batch];
      lineage.holdings.push_back({.slice = place.slice,
                                  .micro_batch = place.micro_batch,
                                  .task = micro_batch.task,
                                  .pieces = {},
                                  .ranks = places_->slice(place.slice),
                                  .fetchers = places_->fetchers(place.slice)});
    }
    lineage.holdings.back().pieces.push_back(plan_->pieces[place.piece]);
  }
  const auto of_sample =
      std::ranges::equal_range(pictures_by_sample_, sample, {},
                               [this](std::uint32_t at) { return pictures_->pictures[at].sample; });
  for (const std::uint32_t at : of_sample) {
    const PlacedPicture& picture = pictures_->pictures[at];
    lineage.pictures.push_back(
        {picture.picture, picture.patches,
         ranks_of_bucket(plan_->topology, pictures_->spread, picture.bucket)});
  }
  return lineage;
}

std::vector<SampleLineage> Lineage::of_record(model::SourceId source,
                                              model::RecordIndex record) const {
  std::vector<SampleLineage> result;
  const auto id_of = [this](SampleIndex at) { return plan_->samples[at.value].id; };
  const SampleId first{source, model::Epoch(0), model::RecordIndex(0), model::PartIndex(0)};
  auto at = std::ranges::lower_bound(by_id_, first, {}, id_of);
  for (; at != by_id_.end() && id_of(*at).source == source; ++at) {
    if (id_of(*at).index == record) result.push_back(lineage_of(*at));
  }
  return result;
}

Result<SampleLineage> Lineage::of_sample(const SampleId& id) const {
  const auto id_of = [this](SampleIndex at) { return plan_->samples[at.value].id; };
  const auto found = std::ranges::lower_bound(by_id_, id, {}, id_of);
  if (found == by_id_.end() || id_of(*found) != id) {
    return Status::not_found(fmt::format("the step has no sample {} among its {}", to_string(id),
                                         plan_->samples.size()));
  }
  return lineage_of(*found);
}

Result<RankLineage> Lineage::of_rank(Rank rank) const {
  const model::Topology& topology = plan_->topology;
  if (rank.value >= topology.world_size()) {
    return Status::invalid(fmt::format("there is no rank {} in {}, which has {}", rank.value,
                                       to_string(topology), topology.world_size()));
  }
  RankLineage lineage;
  lineage.rank = rank;
  lineage.slice = topology.hdp_rank(rank);
  lineage.feeder = places_->feeder(rank);
  lineage.needs = places_->needs(rank);
  for (const model::MicroBatch& micro_batch : plan_->micro_batches_of(lineage.slice)) {
    RankMicroBatch& runs = lineage.micro_batches.emplace_back();
    runs.task = micro_batch.task;
    for (const model::Piece& piece : plan_->pieces_of(micro_batch)) {
      runs.pieces.push_back(piece);
      runs.samples.push_back(plan_->samples[piece.sample.value].id);
    }
  }
  if (pictures_ == nullptr) return lineage;
  const std::uint32_t bucket = bucket_of(topology, rank, pictures_->spread);
  for (const PlacedPicture& picture : pictures_->pictures) {
    if (picture.bucket != bucket) continue;
    lineage.pictures.push_back({plan_->samples[picture.sample.value].id, picture.picture});
  }
  return lineage;
}

}  // namespace batchloom::planning
