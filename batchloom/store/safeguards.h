// SPDX-License-Identifier: Apache-2.0
// The protocol's safeguards as switches, so that the simulator can show that each is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace batchloom::store {

enum class Safeguard : std::uint8_t {
  kDropRule,          ///< Items that the head already covers are not appended again.
  kTermCheck,         ///< A session stops once its producer's term has moved.
  kFloorCheck,        ///< A created slot counts only if it is above the floor.
  kSecondPinListing,  ///< A trim lists the pins again after its intent was committed.
  kSegmentProof,  ///< A segment is an orphan only for a head whose slot is not below the segment's.
  kStateRef,      ///< A producer row keeps its state object alive.
  kMembershipRef,   ///< A membership row keeps the object with its keys alive.
  kPackTrim,        ///< A batch object goes only when all of its steps are trimmed.
  kFirstStepMax,    ///< A trim that comes late does not lower the first step.
  kIntentOwner,     ///< A trim is completed only under the very intent that it committed.
  kListBeforeHead,  ///< Orphans are listed before the head is read that decides on them.
};

inline constexpr Safeguard kAllSafeguards[] = {
    Safeguard::kDropRule,         Safeguard::kTermCheck,      Safeguard::kFloorCheck,
    Safeguard::kSecondPinListing, Safeguard::kSegmentProof,   Safeguard::kStateRef,
    Safeguard::kMembershipRef,    Safeguard::kPackTrim,       Safeguard::kFirstStepMax,
    Safeguard::kIntentOwner,      Safeguard::kListBeforeHead,
};

/// The name on the command line: "drop-rule", "term-check", ...
std::string_view to_string(Safeguard safeguard);
std::optional<Safeguard> parse_safeguard(std::string_view name);

/// All hold, unless a simulation breaks one. No command but `batchloom sim` sets another value than
/// the default.
struct Safeguards {
  std::optional<Safeguard> broken;
  /// Told each time that a safeguard is about to decide something.
  std::function<void(Safeguard)> on_use;

  /// Asked exactly where the safeguard changes what happens.
  bool hold(Safeguard safeguard) const {
    if (on_use) on_use(safeguard);
    return broken != safeguard;
  }
};

}  // namespace batchloom::store
