// SPDX-License-Identifier: Apache-2.0
// Items of known cost into buckets of nearly equal cost: who ends where, and nothing else. Items
// are never left out or held back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace batchloom::planning {

/// By item, its bucket: a value below the number of buckets.
using Buckets = std::vector<std::uint32_t>;

/// Longest processing time first: by descending cost, each to the bucket that has least so far; the
/// first such bucket, and of equal items the first. No bucket exceeds 4/3 of the best possible
/// maximum (Graham, 1969). O(n log n). Precondition: at least one bucket.
Buckets balance_lpt(std::span<const std::uint64_t> costs, std::uint32_t buckets);

/// Karmarkar and Karp's differencing (1982), for any number of buckets: partial solutions are
/// merged, those that differ most first, the fullest bucket of one with the emptiest of the other.
/// Closer than LPT, and slower: O(n k log k) for k buckets. Precondition: at least one bucket.
Buckets balance_karmarkar_karp(std::span<const std::uint64_t> costs, std::uint32_t buckets);

struct SizedItem {
  std::uint64_t cost = 0;
  std::uint32_t size = 0;
};

/// How many bins of `capacity` first-fit by descending size needs; nullopt where an item is larger
/// than one.
std::optional<std::uint32_t> count_bins(std::span<const SizedItem> items, std::uint32_t capacity);

/// Items into `bins` bins that none exceeds in size and that are of nearly equal cost: by
/// descending cost, each to the cheapest bin that has room. Where that leaves an item without room,
/// first-fit by descending size, which looks at sizes alone. Nullopt where that does not fit
/// either: it does with count_bins() bins and more.
std::optional<Buckets> balance_within(std::span<const SizedItem> items, std::uint32_t bins,
                                      std::uint32_t capacity);

/// The same by size alone.
std::optional<Buckets> fit_within(std::span<const SizedItem> items, std::uint32_t bins,
                                  std::uint32_t capacity);

/// The largest sum of a bucket over the mean: 1 is perfect. 1 where all costs are 0.
double imbalance_of(std::span<const std::uint64_t> costs, const Buckets& of, std::uint32_t buckets);

}  // namespace batchloom::planning
