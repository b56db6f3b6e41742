// SPDX-License-Identifier: Apache-2.0
// Where a sample went, and what a rank trained on: the answers to "which samples were in this step,
// and who saw them?" after a spike of the loss.
//
//   record -> parts -> HDP ranks -> micro-batch, pieces, task -> ranks, and those that fetch
//   rank   -> its HDP rank -> micro-batches -> pieces of samples; who fetches for it
//
// and, where pictures were laid out, from a sample to those who encode its pictures and back.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/pictures.h"
#include "batchloom/planning/place_tree.h"

namespace batchloom::planning {

/// What an HDP rank holds of a sample.
struct SampleHolding {
  model::HdpRank slice;
  std::uint32_t micro_batch = 0;  ///< In the order in which the rank runs them, from 0.
  model::TaskIndex task;
  std::vector<model::Piece> pieces;   ///< Of this sample alone, by position.
  std::vector<model::Rank> ranks;     ///< Of the slice: all train on it. Ascending.
  std::vector<model::Rank> fetchers;  ///< Those of them that read it from the store.

  friend bool operator==(const SampleHolding&, const SampleHolding&) = default;
};

/// Who encodes a picture.
struct PicturePlace {
  std::uint32_t picture = 0;  ///< Of the sample, from 0.
  std::uint32_t patches = 0;
  std::vector<model::Rank> ranks;  ///< Ascending.

  friend bool operator==(const PicturePlace&, const PicturePlace&) = default;
};

struct SampleLineage {
  model::PlanSample sample;
  std::vector<SampleHolding> holdings;  ///< By HDP rank. Together they hold each token once.
  std::vector<PicturePlace> pictures;   ///< None where pictures were not laid out.

  friend bool operator==(const SampleLineage&, const SampleLineage&) = default;
};

/// A picture of a sample.
struct PictureOf {
  model::SampleId sample;
  std::uint32_t picture = 0;

  friend bool operator==(const PictureOf&, const PictureOf&) = default;
};

/// What a rank runs in one forward pass.
struct RankMicroBatch {
  model::TaskIndex task;
  std::vector<model::Piece> pieces;      ///< None: a filler.
  std::vector<model::SampleId> samples;  ///< Of each piece.

  friend bool operator==(const RankMicroBatch&, const RankMicroBatch&) = default;
};

struct RankLineage {
  model::Rank rank;
  model::HdpRank slice;
  model::Rank feeder;  ///< Who fetches for it: itself, unless it is fed.
  TensorNeeds needs;   ///< What of its pieces it trains on.
  std::vector<RankMicroBatch> micro_batches;
  std::vector<PictureOf> pictures;  ///< That it encodes.

  friend bool operator==(const RankLineage&, const RankLineage&) = default;
};

/// Of one plan. Immutable; thread-safe. Sorts the plan's pieces once; of_sample() looks at its own,
/// of_record() at all samples of its source, of_rank() at all pictures.
class Lineage {
 public:
  /// Borrows all; `pictures` may be null. `invalid`: a plan that cannot be walked
  /// (check_plan_structure), places of another topology than the plan's, a sample listed twice,
  /// pictures of samples or buckets that do not exist.
  static Result<Lineage> create(const model::StepPlan& plan, const PlaceTree& places,
                                const PictureAssignment* pictures = nullptr);

  /// All parts of the record in the step, over all passes, by id. Empty: it has none.
  std::vector<SampleLineage> of_record(model::SourceId source, model::RecordIndex record) const;
  /// `not_found`: the step does not have the sample.
  Result<SampleLineage> of_sample(const model::SampleId& id) const;
  /// `invalid`: no rank of the topology.
  Result<RankLineage> of_rank(model::Rank rank) const;

 private:
  /// A piece, and where it lies.
  struct Place {
    model::SampleIndex sample;
    model::HdpRank slice;
    std::uint32_t micro_batch = 0;  ///< Of the rank.
    std::uint32_t piece = 0;        ///< In StepPlan::pieces.

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  Lineage(const model::StepPlan& plan, const PlaceTree& places, const PictureAssignment* pictures)
      : plan_(&plan), places_(&places), pictures_(pictures) {}

  void index();
  Status check_pictures_exist() const;
  SampleLineage lineage_of(model::SampleIndex sample) const;

  const model::StepPlan* plan_;
  const PlaceTree* places_;
  const PictureAssignment* pictures_;
  std::vector<model::SampleIndex> by_id_;
  std::vector<Place> pieces_;                      ///< In ascending order.
  std::vector<std::uint32_t> pictures_by_sample_;  ///< Places in PictureAssignment::pictures.
};

}  // namespace batchloom::planning
