// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/bucket_swaps.h"
#include "batchloom/planning/place_tree.h"

namespace batchloom::planning {
namespace {

__extension__ using WideTime = unsigned __int128;

/// Exchanges per bucket that two_module may make: LPT leaves little to do, so few are ever made.
constexpr std::uint32_t kExchangesPerBucket = 4;

std::vector<std::uint64_t> costs_of(std::span<const PlacedPicture> pictures) {
  std::vector<std::uint64_t> costs;
  costs.reserve(pictures.size());
  for (const PlacedPicture& picture : pictures) costs.push_back(picture.cost_ns);
  return costs;
}

Buckets dealt_out(std::size_t items, std::uint32_t buckets) {
  Buckets of(items);
  for (std::size_t item = 0; item < items; ++item) {
    of[item] = static_cast<std::uint32_t>(item % buckets);
  }
  return of;
}

Buckets balanced(Balance balance, std::span<const std::uint64_t> costs, std::uint32_t buckets) {
  if (balance == Balance::kNone) return dealt_out(costs.size(), buckets);
  if (balance == Balance::kKarmarkarKarp) return balance_karmarkar_karp(costs, buckets);
  Buckets of = balance_lpt(costs, buckets);
  if (balance == Balance::kTwoModule) even_out(costs, buckets, kExchangesPerBucket * buckets, of);
  return of;
}

std::string name_of(const model::SampleMeta& sample, std::size_t picture) {
  return fmt::format("sample {}, picture {}", to_string(sample.id), picture);
}

}  // namespace

double PictureAssignment::over_mean(std::uint64_t time_ns) const {
  if (total_ns == 0) return 1;
  return static_cast<double>(time_ns) * buckets / static_cast<double>(total_ns);
}

Result<std::vector<PlacedPicture>> pictures_of(const CostModel& encoder,
                                               std::span<const model::SampleMeta> samples) {
  std::vector<PlacedPicture> pictures;
  WideTime total = 0;
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    const model::SampleMeta& sample = samples[row];
    for (std::uint32_t i = 0; i < sample.image_patches.size(); ++i) {
      const std::uint32_t patches = sample.image_patches[i];
      if (patches == 0) {
        return Status::invalid(name_of(sample, i) + " has no patches; a picture has some");
      }
      const WideTime cost = WideTime{encoder.encoder.time_ns(patches)} * encoder.layers;
      total += cost;
      if (total > UINT64_MAX / 2) {
        return Status::invalid(fmt::format(
            "{} of {} patches: by cost model '{}' the step's pictures take more time than 64 bits "
            "of nanoseconds hold",
            name_of(sample, i), patches, encoder.name));
      }
      pictures.push_back({.sample = model::SampleIndex(row),
                          .picture = i,
                          .patches = patches,
                          .cost_ns = static_cast<std::uint64_t>(cost)});
    }
  }
  return pictures;
}

Result<PictureAssignment> assign_pictures(const CostModel& encoder, const model::Topology& topology,
                                          Spread spread, Balance balance,
                                          std::span<const model::SampleMeta> samples) {
  if (balance == Balance::kTwoLevel || balance == Balance::kHdp) {
    return Status::invalid(fmt::format(
        "pictures by {}: they are neither packed nor cut; use none, lpt, kk or two_module",
        to_string(balance)));
  }
  BL_ASSIGN_OR_RETURN(std::vector<PlacedPicture> pictures, pictures_of(encoder, samples));
  const std::vector<std::uint64_t> costs = costs_of(pictures);
  const std::uint32_t buckets = bucket_count(topology, spread);
  Buckets of = balanced(balance, costs, buckets);
  const Buckets dealt = dealt_out(costs.size(), buckets);
  if (fullest(costs, of, buckets) >= fullest(costs, dealt, buckets)) of = dealt;
  return make_assignment(spread, buckets, std::move(pictures), of, dealt);
}

PictureAssignment make_assignment(Spread spread, std::uint32_t buckets,
                                  std::vector<PlacedPicture> pictures, const Buckets& of,
                                  const Buckets& dealt) {
  const std::vector<std::uint64_t> costs = costs_of(pictures);
  PictureAssignment assignment;
  assignment.spread = spread;
  assignment.buckets = buckets;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    pictures[i].bucket = of[i];
    assignment.total_ns += costs[i];
  }
  assignment.pictures = std::move(pictures);
  assignment.lower_bound_ns = least_fullest(costs, buckets);
  assignment.makespan_ns = fullest(costs, of, buckets);
  assignment.dealt_makespan_ns = fullest(costs, dealt, buckets);
  return assignment;
}

Status check_pictures(const PictureAssignment& assignment,
                      std::span<const model::SampleMeta> samples, const model::Topology& topology) {
  if (assignment.buckets != bucket_count(topology, assignment.spread)) {
    return Status::invalid(fmt::format("pictures on {} buckets, where {} makes {} along {}",
                                       assignment.buckets, to_string(topology),
                                       bucket_count(topology, assignment.spread),
                                       to_string(assignment.spread)));
  }
  std::size_t next = 0;
  std::vector<std::uint64_t> loads(assignment.buckets, 0);
  std::uint64_t total = 0;
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    const model::SampleMeta& sample = samples[row];
    for (std::uint32_t i = 0; i < sample.image_patches.size(); ++i, ++next) {
      const bool there = next < assignment.pictures.size() &&
                         assignment.pictures[next].sample.value == row &&
                         assignment.pictures[next].picture == i;
      if (!there) {
        return Status::invalid(name_of(sample, i) +
                               " is not where it belongs among the pictures: "
                               "each is there once, by sample and place");
      }
      const PlacedPicture& placed = assignment.pictures[next];
      if (placed.patches != sample.image_patches[i]) {
        return Status::invalid(fmt::format("{} has {} patches, not {}", name_of(sample, i),
                                           sample.image_patches[i], placed.patches));
      }
      if (placed.bucket >= assignment.buckets) {
        return Status::invalid(fmt::format("{} is encoded by bucket {} of {}", name_of(sample, i),
                                           placed.bucket, assignment.buckets));
      }
      loads[placed.bucket] += placed.cost_ns;
      total += placed.cost_ns;
    }
  }
  if (next != assignment.pictures.size()) {
    return Status::invalid(fmt::format("{} pictures are placed, of {} that the samples have",
                                       assignment.pictures.size(), next));
  }
  std::uint64_t makespan = 0;
  for (const std::uint64_t load : loads) makespan = std::max(makespan, load);
  if (total != assignment.total_ns || makespan != assignment.makespan_ns ||
      assignment.lower_bound_ns > makespan) {
    return Status::invalid(fmt::format(
        "pictures take {} ns, {} ns of them in the fullest bucket; the assignment says {}, {} and "
        "at least {}",
        total, makespan, assignment.total_ns, assignment.makespan_ns, assignment.lower_bound_ns));
  }
  return Status::ok();
}

}  // namespace batchloom::planning
