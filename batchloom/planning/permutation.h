// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "batchloom/model/ids.h"

namespace batchloom::planning {

/// Whose order a permutation is.
struct PermutationKey {
  std::uint64_t seed = 0;
  model::SourceId source;
  model::Epoch epoch;
};

/// A keyed order of the records [0, records): a bijection, computed for one place at a time, with
/// no memory that grows with `records`.
///
///   1. The records are embedded into the smallest power of two that holds them (64 at least:
///      halves of fewer than three bits are not mixed well).
///   2. A Feistel network of kRounds rounds permutes that: its two halves, a bit apart where the
///      number of bits is odd, take turns in being changed by a keyed hash of the other.
///   3. What leaves the records is sent through again until it comes back ("cycle walking"): fewer
///      than two turns on average, from 33 records on. It is a bijection, since the network is one.
///
/// Black and Rogaway, "Ciphers with arbitrary finite domains" (CT-RSA 2002). Good statistics, no
/// secrecy. The same on every host. Immutable.
class Permutation {
 public:
  Permutation(const PermutationKey& key, std::uint64_t records);

  /// The record at `place` of the order. Precondition: place < records.
  model::RecordIndex at(std::uint64_t place) const;

 private:
  static constexpr int kRounds = 8;  ///< Even, so that uneven halves end where they began.

  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t records_ = 0;
  int low_bits_ = 1;
  int high_bits_ = 1;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace batchloom::planning
