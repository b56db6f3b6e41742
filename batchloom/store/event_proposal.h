// SPDX-License-Identifier: Apache-2.0
// The events of a stream (stream_events.h) as pure functions: the head after `head` in which one
// holds, or nullopt where it does already.
#pragma once

#include <optional>

#include "batchloom/model/topology.h"
#include "batchloom/store/head.h"
#include "batchloom/store/limits.h"

namespace batchloom::store {

/// `not_found` outside [first_step, next_step); `exhausted` where events would exceed their budget.
Result<std::optional<Head>> propose_skip(const Head& head, Step step, const Limits& limits);

/// Replaces a topology since which nothing was appended. `invalid` for one without axes,
/// `exhausted` as above.
Result<std::optional<Head>> propose_topology(const Head& head, const model::Topology& topology,
                                             const Limits& limits);

/// Whether keys with `digest` decide membership from `from_step` on, for good or until a later
/// event. A row that is not in force yet counts for its own first step only: it may be replaced.
bool is_membership_set(const Head& head, Step from_step, const MembershipDigest& digest);

/// Replaces a row of the same first step. `invalid` where that is below next_step, `exhausted` as
/// above.
Result<std::optional<Head>> propose_membership(const Head& head, const MembershipRow& row,
                                               const Limits& limits);

std::optional<Head> propose_end(const Head& head);
std::optional<Head> propose_reopen(const Head& head);

}  // namespace batchloom::store
