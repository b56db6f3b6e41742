// SPDX-License-Identifier: Apache-2.0
// Samples with pictures, for tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

/// A picture of p patches takes about 50 us + 30 ns x p + 0.02 ns x p^2, in each of 2 layers.
inline CostModel picture_costs() {
  CostModel model;
  model.name = "vit";
  model.layers = 2;
  std::vector<CostPoint> points;
  for (std::uint32_t patches = 64; patches <= 16'384; patches *= 2) {
    const std::uint64_t p = patches;
    points.push_back({patches, 50'000'000 + 30'000 * p + 20 * p * p});
  }
  model.encoder = CostCurve::create(points, CostCurve::Growth::kQuadratic).value();
  return model;
}

inline CostModel text_costs() {
  return builtin_cost_model("h200-llama7b").value();
}

/// Every third sample has pictures, some of them many.
inline void add_pictures(Random& random, model::SampleMeta& sample) {
  if (random.below(3) != 0) return;
  const std::uint64_t pictures = 1 + random.below(random.below(8) == 0 ? 12 : 3);
  for (std::uint64_t picture = 0; picture < pictures; ++picture) {
    sample.image_patches.push_back(64 + static_cast<std::uint32_t>(random.below(4'000)));
  }
}

/// Records 0, 1, 2, ... of source 0.
inline std::vector<model::SampleMeta> vision_samples(std::uint64_t seed, std::size_t count,
                                                     std::uint32_t longest) {
  Random random(seed);
  std::vector<model::SampleMeta> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    model::SampleMeta& sample = samples[i];
    sample.id.index = model::RecordIndex(i);
    sample.tokens = 1 + static_cast<std::uint32_t>(random.below(longest));
    sample.valid_labels = sample.tokens - 1;
    add_pictures(random, sample);
  }
  return samples;
}

/// The same samples, whatever their order, with the pictures that their ids say.
inline std::vector<model::SampleMeta> with_pictures(std::span<const model::PlanSample> samples) {
  std::vector<model::SampleMeta> result;
  for (const model::PlanSample& sample : samples) {
    model::SampleMeta& meta = result.emplace_back();
    meta.id = sample.id;
    meta.tokens = sample.tokens;
    meta.valid_labels = sample.valid_labels;
    meta.first_position = sample.first_position;
    Random random(model::hash_of(sample.id));
    add_pictures(random, meta);
  }
  return result;
}

}  // namespace batchloom::planning
