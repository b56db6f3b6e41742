// SPDX-License-Identifier: Apache-2.0
// Which consumer rank needs what of a step, and which ranks get it from the store: the trainer's
// mesh, seen from its data.
//
//  1. Ranks that differ along dp need other samples; along cp, other stretches of the same samples;
//     along tp and pp, the same tokens. That is a mesh by itself: a hybrid plan deals pieces to HDP
//     ranks as it likes, and what is said of a slice holds of its HDP rank.
//  2. Of those tokens, pipeline stages need different tensors: the first embeds (tokens,
//     positions), the last computes the loss (labels, mask), those between only pass on what they
//     get and need lengths, which a run's header has. One stage alone needs all.
//  3. Along a broadcast axis the rank at 0 fetches for the others, which read nothing. It fetches
//     what all those it feeds need.
//  4. Experts do not change what a rank needs. So ep is no axis of a topology, no factor of its
//     world size: an expert group is ep neighbours along dp. Its ranks exchange tokens in every
//     layer, so what they must have in common is the number of micro-batches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/model/topology.h"

namespace batchloom::planning {

/// Tensors of a step, beside the lengths.
struct TensorNeeds {
  bool tokens = false;
  bool positions = false;
  bool labels = false;
  bool loss_mask = false;

  bool any() const { return tokens || positions || labels || loss_mask; }
  TensorNeeds& operator|=(const TensorNeeds& other);
  friend bool operator==(const TensorNeeds&, const TensorNeeds&) = default;
};

/// What the data of two ranks have in common.
enum class Sharing : std::uint8_t {
  kOtherSamples,    ///< Nothing.
  kOtherStretches,  ///< The samples, of which they hold other tokens.
  kSameTokens,      ///< The tokens: they are of one slice.
};

/// What gets a share of its own where a part of a step is distributed.
enum class Spread : std::uint8_t {
  kDp,     ///< Each coordinate along dp.
  kHdp,    ///< Each slice: each pair of coordinates along dp and cp.
  kWorld,  ///< Each rank, as for pictures that all ranks encode.
};
/// "dp", "hdp" or "world".
std::string_view to_string(Spread spread);
/// Their names, in the order of the values.
std::span<const std::string_view> spread_names();

/// How many shares there are.
std::uint32_t bucket_count(const model::Topology& topology, Spread spread);
/// Which of them the rank needs. Precondition: a rank of the topology.
std::uint32_t bucket_of(const model::Topology& topology, model::Rank rank, Spread spread);
/// The ranks that need this one, ascending.
std::vector<model::Rank> ranks_of_bucket(const model::Topology& topology, Spread spread,
                                         std::uint32_t bucket);

/// Immutable; thread-safe. Ranks and slices that are given to it must be of its topology (checked).
class PlaceTree {
 public:
  struct Options {
    model::Topology topology;
    /// Of tp and pp. tp costs the trainer a small broadcast per micro-batch and divides what is
    /// read by the extent of tp; pp also makes its first stage read what only the last one needs.
    std::vector<model::Axis> broadcast = {model::Axis::kTp};
    /// The size of an expert group.
    std::uint32_t ep = 1;
    /// The last stage predicts several tokens ahead (MTP), for which it embeds them, too.
    bool mtp = false;
  };

  /// `invalid`: a broadcast axis along which data differ (dp, cp) or that is named twice; an ep
  /// that does not divide the extent of dp.
  static Result<PlaceTree> create(Options options);

  const Options& options() const { return options_; }
  const model::Topology& topology() const { return options_.topology; }

  /// What the rank trains on, wherever it comes from.
  TensorNeeds needs(model::Rank rank) const;
  /// Who fetches for the rank: itself, unless it is fed.
  model::Rank feeder(model::Rank rank) const;
  /// What the rank reads from the store: nothing if it is fed, or if neither it nor any rank that
  /// it feeds needs a tensor.
  TensorNeeds fetches(model::Rank rank) const;

  /// The ranks of a slice, ascending.
  std::vector<model::Rank> slice(model::HdpRank slice) const;
  /// Those of them that read from the store, ascending.
  std::vector<model::Rank> fetchers(model::HdpRank slice) const;
  /// Those that get what this one fetches, itself included, ascending; none if it is fed.
  std::vector<model::Rank> fed_by(model::Rank rank) const;

  Sharing sharing(model::Rank a, model::Rank b) const;

  std::uint32_t bucket_count(Spread spread) const;
  /// Which of the bucket_count(spread) shares the rank needs.
  std::uint32_t bucket(model::Rank rank, Spread spread) const;

  /// The ranks that hold one set of experts together, ascending, `rank` included.
  std::vector<model::Rank> expert_group(model::Rank rank) const;

 private:
  explicit PlaceTree(Options options) : options_(std::move(options)) {}

  Options options_;
};

}  // namespace batchloom::planning
