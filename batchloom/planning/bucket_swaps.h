// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "batchloom/planning/balance.h"

namespace batchloom::planning {

/// Evens out what a first assignment left: moves an item from the fullest bucket to the emptiest,
/// or exchanges two between them, such that both come as close together as one exchange can bring
/// them; until none brings them closer, or after `steps` exchanges. Of equal buckets and items the
/// first. No load comes to exceed the largest there was. A step takes O(n log n) for the n items of
/// the two. Precondition: `of` has a bucket below `buckets` for each item.
void even_out(std::span<const std::uint64_t> costs, std::uint32_t buckets, std::uint32_t steps,
              Buckets& of);

/// The largest sum of a bucket; 0 without items.
std::uint64_t fullest(std::span<const std::uint64_t> costs, const Buckets& of,
                      std::uint32_t buckets);

/// What the fullest of so many buckets holds at least, whoever assigns: the mean, the largest item,
/// and, where items outnumber buckets, the two smallest of the largest buckets + 1, since two of
/// those share one.
std::uint64_t least_fullest(std::span<const std::uint64_t> costs, std::uint32_t buckets);

}  // namespace batchloom::planning
