// SPDX-License-Identifier: Apache-2.0
// What a sample graph says, as a value: the same from C++ (sample_graph.h) and from TOML
// (sample_graph_toml.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/model/topology.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/place_tree.h"

namespace batchloom::planning {

/// What a selection lays out.
enum class Modality : std::uint8_t {
  kText,   ///< The tokens of all samples, for the backbone; those that stand for pictures included.
  kImage,  ///< The pictures of all samples, for the encoder.
};

/// How members are arranged. Names in files: none, lpt, kk, two_level, hdp, two_module.
enum class Balance : std::uint8_t {
  kNone,           ///< Dealt out in the order of their ids.
  kLpt,            ///< Longest processing time first (balance.h).
  kKarmarkarKarp,  ///< Differencing (balance.h).
  kTwoLevel,       ///< Over groups of ranks, then over micro-batches (grouped.h). Text only.
  kHdp,            ///< Each sample on as many ranks as suits it (hdp.h). Text only.
  kTwoModule,      ///< Encoder and backbone together (two_module.h): of both selections.
};

/// "text" or "image".
std::string_view to_string(Modality modality);
std::string_view to_string(Balance balance);

/// All names, in the order of the values.
std::span<const std::string_view> modality_names();
std::span<const std::string_view> balance_names();

/// How tokens are arranged, beside the balance; pictures have none of this.
struct TokenOptions {
  std::uint32_t capacity_tokens = 8192;   ///< Of a micro-batch on one rank.
  std::uint32_t min_share_tokens = 4096;  ///< hdp: the least share of a sample on several ranks.
  bool offload = true;                    ///< hdp: activations may go to the host.

  friend bool operator==(const TokenOptions&, const TokenOptions&) = default;
};

/// What was said of one modality; what was not said is absent.
struct SelectionSpec {
  Modality modality = Modality::kText;
  std::optional<Spread> distribute = {};
  std::optional<CostModel> cost = {};
  std::optional<Balance> balance = {};
  TokenOptions options = {};
  std::vector<model::Axis> broadcast_at = {};

  friend bool operator==(const SelectionSpec&, const SelectionSpec&) = default;
};

/// A source's part in the mixture: its weight and how it is gone through.
struct MixSource {
  std::string name;
  Schedule weight;
  Exhausted exhausted = Exhausted::kStop;
  std::uint32_t epochs = 0;  ///< Passes with kRepeat; 0 for no end.
  Order order = Order::kRandom;

  friend bool operator==(const MixSource&, const MixSource&) = default;
};

/// What steps contain. Fields as in MixtureConfig; how many records there are is metadata.
struct MixSpec {
  std::uint64_t seed = 0;
  StepUnit unit = StepUnit::kTokens;
  std::uint64_t units_per_step = 1;
  std::uint32_t max_sample_tokens = 1;
  std::vector<MixSource> sources = {};

  friend bool operator==(const MixSpec&, const MixSpec&) = default;
};

struct GraphSpec {
  std::optional<MixSpec> mix = {};  ///< Absent where the step's members are given.
  std::vector<SelectionSpec> selections = {};

  /// The first selection of the modality, or nullptr.
  const SelectionSpec* find(Modality modality) const;

  friend bool operator==(const GraphSpec&, const GraphSpec&) = default;
};

}  // namespace batchloom::planning
