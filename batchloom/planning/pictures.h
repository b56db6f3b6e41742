// SPDX-License-Identifier: Apache-2.0
// The pictures of a step onto those who encode them. An encoder runs apart from the backbone, so a
// picture need not be encoded where its sample's tokens are: ranks exchange embeddings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/balance.h"
#include "batchloom/planning/graph_spec.h"

namespace batchloom::planning {

/// A picture, and who encodes it.
struct PlacedPicture {
  model::SampleIndex sample;  ///< Of the step, in the order of ids: as in its plan.
  std::uint32_t picture = 0;  ///< Of the sample, from 0.
  std::uint32_t patches = 0;
  std::uint64_t cost_ns = 0;  ///< Forward and backward through all layers of the encoder.
  std::uint32_t bucket = 0;   ///< Of those that the spread makes (place_tree.h).

  friend bool operator==(const PlacedPicture&, const PlacedPicture&) = default;
};

/// A value. The ranks of a bucket encode its pictures together; `cost_ns` is the time it takes
/// them, and with Spread::kWorld a bucket is one rank.
struct PictureAssignment {
  Spread spread = Spread::kWorld;
  std::uint32_t buckets = 1;
  std::vector<PlacedPicture> pictures;  ///< By (sample, picture).
  std::uint64_t total_ns = 0;           ///< Of all pictures.
  std::uint64_t lower_bound_ns = 0;     ///< No assignment ends earlier (least_fullest()).
  std::uint64_t makespan_ns = 0;        ///< Of the fullest bucket.
  std::uint64_t dealt_makespan_ns = 0;  ///< The same, had all been dealt out in order.

  /// The fullest bucket over the mean: 1 is perfect, and 1 where there is nothing to do.
  double imbalance() const { return over_mean(makespan_ns); }
  double imbalance_before() const { return over_mean(dealt_makespan_ns); }

  friend bool operator==(const PictureAssignment&, const PictureAssignment&) = default;

 private:
  double over_mean(std::uint64_t time_ns) const;
};

/// The pictures of `samples`, which are in the order of their ids, with their costs and no bucket
/// yet. `invalid`: a picture without patches, named by sample and place, and work that 64 bits of
/// nanoseconds do not hold.
Result<std::vector<PlacedPicture>> pictures_of(const CostModel& encoder,
                                               std::span<const model::SampleMeta> samples);

/// Pictures onto buckets by none, lpt, kk or two_module (lpt, then even_out()). Pure. Where that is
/// no better than dealing out, they are dealt out. `invalid`: as pictures_of(); another balance.
Result<PictureAssignment> assign_pictures(const CostModel& encoder, const model::Topology& topology,
                                          Spread spread, Balance balance,
                                          std::span<const model::SampleMeta> samples);

/// The assignment of `pictures` to the buckets `of`; `dealt` are those they would be in, had
/// nothing been balanced.
PictureAssignment make_assignment(Spread spread, std::uint32_t buckets,
                                  std::vector<PlacedPicture> pictures, const Buckets& of,
                                  const Buckets& dealt);

/// Whether each picture of `samples` is encoded exactly once, by a bucket that exists, and the sums
/// are right. `invalid`, naming sample and picture.
Status check_pictures(const PictureAssignment& assignment,
                      std::span<const model::SampleMeta> samples, const model::Topology& topology);

}  // namespace batchloom::planning
