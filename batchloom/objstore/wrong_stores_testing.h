// SPDX-License-Identifier: Apache-2.0
// Stores that break one promise each, as servers in the wild do: they keep the conformance suite
// and the probe honest. Each wraps a right store, and is right in all other respects.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

enum class Defect : std::uint8_t {
  kIgnoresConditions,  ///< Every put is unconditional.
  kSeveralWinners,     ///< Creators that race all win; one after the other they get it right.
  kWrongRange,         ///< A ranged read gives the object's first bytes.
  kListMissesFresh,    ///< A listing does not show the key that was put last.
  kListLosesReplaced,  ///< A listing does not show a key whose object is replaced before its page.
};

/// `inner` with a defect. Both `inner` and `runtime` outlive it. Thread-safe.
std::unique_ptr<ObjectStore> make_wrong_store(Defect defect, ObjectStore& inner, Runtime& runtime);

}  // namespace batchloom::objstore
