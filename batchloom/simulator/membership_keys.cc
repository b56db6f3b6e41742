// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/membership_keys.h"

namespace batchloom::simulator {

Bytes membership_keys(const store::MembershipDigest& digest) {
  const auto size = static_cast<std::size_t>(digest.low % 5) * 30;
  return Bytes(size, static_cast<std::byte>(digest.low));
}

}  // namespace batchloom::simulator
