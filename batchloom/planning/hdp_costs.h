// SPDX-License-Identifier: Apache-2.0
// The cost model as hybrid assignment asks for it: in tables, for one number of ranks and one
// capacity.
//
// A sample of s tokens on d ranks takes t(s, d) = ceil(att(s) / d) + lin(ceil(s / d)) + g on each;
// a pack of whole samples on one rank takes the sum of att(s) + lin(the sum of s) + g; g being the
// launch of one micro-batch. Two terms may come on top, in each phase for itself:
//
//   ring   d - 1 times, what sending the keys and values of ceil(s / d) tokens to the neighbour
//          takes longer than the computing of one step of the ring, att / d^2. Only with `links`.
//   copy   what copying to the host, or back, takes longer than the phase. Only where a rank holds
//          more than its capacity. (ByteScale, section 4.2, asks that it never does, by
//          r x Act(s) <= T(s) x B; here it may, at its price.)
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/phase_times.h"

namespace batchloom::planning {

/// What a ring over so many ranks exchanges through.
struct RingLink {
  std::uint32_t ranks = 1;                  ///< Of the largest group that these links join.
  std::uint64_t bandwidth_bytes_per_s = 0;  ///< Per rank and direction; at least 1.
  std::uint64_t latency_ns = 0;
};

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
  /// So may all that is longer than the capacity: fewer ranks, which need not be worth it.
  bool offload_any = false;
  /// Innermost first, the last joins all ranks, each no faster than the one before. None: exchanges
  /// take no time.
  std::vector<RingLink> links = {};
  /// What a step of the ring sends backward, in times of what it sends forward: keys and values
  /// again, and their gradients.
  std::uint32_t backward_bytes_factor = 2;
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
    return tokens <= shape_.capacity_tokens ? (*attention_ns_)[tokens]
                                            : model_.attention.time_ns(tokens);
  }
  /// All of a micro-batch but its attention.
  std::uint64_t rest_ns(std::uint32_t tokens) const {
    return tokens <= shape_.capacity_tokens ? packs_->ns[tokens]
                                            : model_.launch_ns + model_.linear.time_ns(tokens);
  }
  /// The least that a pack of so many tokens or more takes, attention apart. Precondition: at most
  /// the capacity.
  std::uint64_t least_rest_from_ns(std::uint32_t tokens) const {
    return packs_->least_from_ns[tokens];
  }
  /// Of a sample of so many tokens, whose attention takes attention_ns, if the gang's ring
  /// exchanges through links[level].
  std::uint64_t gang_ns(std::uint64_t attention_ns, std::uint32_t tokens, std::uint32_t degree,
                        std::size_t level) const {
    const std::uint32_t share = (tokens + degree - 1) / degree;
    if (!shape_.links.empty() || share > shape_.capacity_tokens) {
      return gang_phases(attention_ns, tokens, degree, level).total_ns();
    }
    return (attention_ns + degree - 1) / degree + rest_ns(share);
  }
  /// Through the best links that so many ranks can have.
  std::uint64_t gang_ns(std::uint64_t attention_ns, std::uint32_t tokens,
                        std::uint32_t degree) const {
    return gang_ns(attention_ns, tokens, degree, best_level(degree));
  }
  /// The same by phase; together they are gang_ns().
  PhaseTimes gang_phases(std::uint64_t attention_ns, std::uint32_t tokens, std::uint32_t degree,
                         std::size_t level) const;
  PhaseTimes gang_phases(std::uint64_t attention_ns, std::uint32_t tokens,
                         std::uint32_t degree) const {
    return gang_phases(attention_ns, tokens, degree, best_level(degree));
  }

  /// From ceil(s / C) on, and as many as min_share_tokens allows. Where ceil(s / C) is more ranks
  /// than there are: half of them to all, if offload makes room for it. With offload_any, from the
  /// fewest that hold the sample with all activations on the host.
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

  std::size_t best_level(std::uint32_t degree) const {
    std::size_t level = 0;
    while (level + 1 < shape_.links.size() && shape_.links[level].ranks < degree) ++level;
    return level;
  }
  /// What the ring takes longer than its computing, compute_ns.
  std::uint64_t exposed_ns(std::uint64_t compute_ns, std::uint64_t bytes, std::uint32_t degree,
                           std::size_t level) const;

  CostModel model_;
  HdpShape shape_;
  std::shared_ptr<const std::vector<std::uint64_t>> attention_ns_;  ///< By tokens, to the capacity.
  std::shared_ptr<const PackTimes> packs_;
  std::uint64_t least_per_token_ = 0;
};

}  // namespace batchloom::planning
