// SPDX-License-Identifier: Apache-2.0
// The integers that name things everywhere, each a type of its own.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "batchloom/base/strong_int.h"

namespace batchloom::model {

/// An optimizer step, from 0.
using Step = StrongInt<struct StepTag, std::uint64_t>;
/// One consumer place, from 0.
using Rank = StrongInt<struct RankTag, std::uint32_t>;
/// A whole TP x PP slice, from 0: what plans give pieces to. The same as Rank where tp = pp = 1.
using HdpRank = StrongInt<struct HdpRankTag, std::uint32_t>;
/// A source, by its place in the pipeline's configuration, from 0.
using SourceId = StrongInt<struct SourceTag, std::uint32_t>;
/// A shard, by its place in its source's sorted list of files, from 0.
using ShardIndex = StrongInt<struct ShardIndexTag, std::uint32_t>;
/// A pass over a source's data, from 0.
using Epoch = StrongInt<struct EpochTag, std::uint32_t>;
/// A record's place in its source's index, from 0.
using RecordIndex = StrongInt<struct RecordIndexTag, std::uint64_t>;
/// The stretch of a record that a sample covers, from 0.
using PartIndex = StrongInt<struct PartIndexTag, std::uint32_t>;

/// A part of a record in one pass over its source: the unit of drawing. Ordered lexicographically.
struct SampleId {
  SourceId source;
  Epoch epoch;
  RecordIndex index;
  PartIndex part;

  friend constexpr auto operator<=>(const SampleId&, const SampleId&) = default;
};

/// Spreads ids of one source and pass well; not proof against ids that are made to collide.
std::uint64_t hash_of(const SampleId& id);

/// "source:epoch:index:part".
std::string to_string(const SampleId& id);

}  // namespace batchloom::model
