// SPDX-License-Identifier: Apache-2.0
// The keys that simulated producers set: they follow from their digest.
#pragma once

#include "batchloom/base/bytes.h"
#include "batchloom/store/ids.h"

namespace batchloom::simulator {

/// Of several sizes, none for some digests.
Bytes membership_keys(const store::MembershipDigest& digest);

}  // namespace batchloom::simulator
