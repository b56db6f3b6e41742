// SPDX-License-Identifier: Apache-2.0
// The identities of a stream: slots, terms, sequence numbers, and the random names that keep
// attempts apart.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "batchloom/base/strong_int.h"
#include "batchloom/model/ids.h"

namespace batchloom::store {

using model::Step;

/// A manifest number, from 1; slot 1 is genesis.
using Slot = StrongInt<struct SlotTag>;
/// A producer's incarnation: the slot of its fence commit. Grows with every fence.
using Term = StrongInt<struct TermTag>;
/// A producer's count of batch objects, from 0; never of steps.
using Seq = StrongInt<struct SeqTag>;
/// Random bits that make a key unique, whoever wrote it.
using Nonce = StrongInt<struct NonceTag>;

/// Names one stream for ever; stands in every stored object, so that a foreign one is recognised.
struct StreamUuid {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const StreamUuid&, const StreamUuid&) = default;
  /// 32 lower-case hexadecimal digits.
  std::string to_string() const;
};

/// Random bits of one commit attempt: equal only where the very same attempt wrote the head.
struct Txid {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Txid&, const Txid&) = default;
};

/// Stands for the keys that decide membership: two digests differ exactly where their keys do. How
/// it is computed is up to who sets the keys.
struct MembershipDigest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const MembershipDigest&, const MembershipDigest&) = default;
  /// 32 lower-case hexadecimal digits.
  std::string to_string() const;
};

}  // namespace batchloom::store
