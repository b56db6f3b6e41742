// SPDX-License-Identifier: Apache-2.0
// The cost model as hybrid assignment asks for it: in tables, for one number of ranks and one
// capacity.
//
// A sample of s tokens on d ranks takes t(s, d) = ceil(att(s) / d) + lin(ceil(s / d)) + g on each;
// a pack of whole samples on one rank takes the sum of att(s) + lin(the sum of s) + g; g being the
// launch of one micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

struct HdpShape {
  std::uint32_t ranks = 1;
  std::uint32_t capacity_tokens = 8192;  ///< Of a micro-batch on one rank; at least 1.
  /// The smallest share of a ring whose exchange hides behind its computing; at least 1. Smaller:
  /// more ranks for a long sample, less work hidden.
  std::uint32_t min_share_tokens = 4096;
  /// Samples that fit on no number of ranks may keep activations on the host: then a rank holds up
  /// to capacity x layers / 2 tokens of one, since two layers always stay on the device (ByteScale,
  /// section 4.2).
  bool offload = true;
};

/// Degrees that a sample may run on; none where `max` is 0.
struct DegreeRange {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};

/// Immutable; thread-safe. Times are of one layer.
class HdpCosts {
 public:
  /// `invalid` for a shape with a zero.
  static Result<HdpCosts> create(const CostModel& model, const HdpShape& shape);

  const HdpShape& shape() const { return shape_; }

  std::uint64_t attention_ns(std::uint32_t tokens) const {
    return tokens <= shape_.capacity_tokens ? attention_ns_[tokens]
                                            : model_.attention.time_ns(tokens);
  }
  /// All of a micro-batch but its attention.
  std::uint64_t rest_ns(std::uint32_t tokens) const {
    return tokens <= shape_.capacity_tokens ? rest_ns_[tokens]
                                            : model_.linear.time_ns(tokens) + model_.launch_ns;
  }
  std::uint64_t gang_ns(std::uint64_t attention_ns, std::uint32_t tokens,
                        std::uint32_t degree) const {
    return (attention_ns + degree - 1) / degree + rest_ns((tokens + degree - 1) / degree);
  }
  /// From ceil(s / C) on, and as many as min_share_tokens allows. Where ceil(s / C) is more ranks
  /// than there are: half of them to all, if offload makes room for it.
  DegreeRange degrees(std::uint32_t tokens) const;

  /// The least share of activations to be copied to the host so that a rank holds `share` tokens of
  /// a sample: with ratio r it holds m tokens while (2 + (1 - r)(layers - 2)) x m <= layers x C.
  /// Precondition: the share follows from degrees().
  model::OffloadRatio offload(std::uint32_t share) const;

  /// What `tokens` tokens of packs take at least, attention apart: at the size of pack that is
  /// cheapest by token. Rounded down.
  std::uint64_t least_rest_ns(std::uint64_t tokens) const;
  /// The same by token, in 1/1,024 ns: for ranking.
  std::uint64_t least_rest_per_token() const { return least_per_token_; }

 private:
  HdpCosts(const CostModel& model, const HdpShape& shape);

  CostModel model_;
  HdpShape shape_;
  std::vector<std::uint64_t> attention_ns_;  ///< By tokens, up to the capacity.
  std::vector<std::uint64_t> rest_ns_;
  std::uint32_t best_pack_tokens_ = 1;
  std::uint64_t least_per_token_ = 0;
};

}  // namespace batchloom::planning
