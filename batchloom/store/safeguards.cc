// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/safeguards.h"

namespace batchloom::store {

std::string_view to_string(Safeguard safeguard) {
  switch (safeguard) {
    case Safeguard::kDropRule: return "drop-rule";
    case Safeguard::kTermCheck: return "term-check";
    case Safeguard::kFloorCheck: return "floor-check";
    case Safeguard::kSecondPinListing: return "second-pin-listing";
    case Safeguard::kSegmentProof: return "segment-proof";
    case Safeguard::kStateRef: return "state-ref";
    case Safeguard::kMembershipRef: return "membership-ref";
    case Safeguard::kPackTrim: return "pack-trim";
    case Safeguard::kFirstStepMax: return "first-step-max";
    case Safeguard::kIntentOwner: return "intent-owner";
    case Safeguard::kListBeforeHead: return "list-before-head";
  }
  return "";
}

std::optional<Safeguard> parse_safeguard(std::string_view name) {
  for (const Safeguard safeguard : kAllSafeguards) {
    if (name == to_string(safeguard)) return safeguard;
  }
  return std::nullopt;
}

}  // namespace batchloom::store
