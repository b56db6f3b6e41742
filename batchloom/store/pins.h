// SPDX-License-Identifier: Apache-2.0
// Pins: promises to keep steps, each tied to a model checkpoint.
//
//  1. Put the pin under a key of its own. It is created once and never overwritten.
//  2. After the put was acknowledged, read a floor-checked head. A trim that did not see the pin
//     must have announced itself before: its first_step or its intent is in that head.
//  3. If first_step is above the pin, the pin came too late: it is removed again and refused.
//  4. If only an intent is above it, a commit withdraws the intent, whose owner then begins anew
//     and sees the pin. Where another head came first, look at that one. With the withdrawal the
//     pin is safe: an intent that is committed later has its listing after it.
//
// A caller that dies or fails in between leaves a pin that keeps more than needed, never less; so
// does a put that arrives after the pin was removed. Pins below first_step promise nothing; they
// are reported by whoever lists them.
#pragma once

#include <string>
#include <vector>

#include "batchloom/store/manifest_reader.h"

namespace batchloom::store {

/// The first step that is still needed, for one checkpoint of a group.
struct Pin {
  PinName name;
  Step step;
  friend bool operator==(const Pin&, const Pin&) = default;
};

struct PinRequest {
  std::string group;
  std::string id;  ///< The checkpoint's name. Several pins may bear it.
  Step step;
};

/// Pins a step: all steps from it on stay readable until the pin is removed. `invalid` for a bad
/// name, `not_found` where the step was trimmed (naming first_step, and the pin where it could not
/// be removed again). After another error the pin may exist, and unpin() removes it.
Result<Pin> pin_step(const Stream& stream, const PinRequest& request, const CallOptions& call);

/// Removes every pin of this group and id. Returns how many there were. `invalid` for a bad name.
/// Repeat after another error.
Result<std::size_t> unpin(const Stream& stream, const std::string& group, const std::string& id,
                          const CallOptions& call);

/// Removes these pins; some may be gone already. Repeat after an error.
Status remove_pins(const Stream& stream, const std::vector<PinName>& names,
                   const CallOptions& call);

/// All pins, or those of one group, in the order of (step, name). A pin that is removed meanwhile
/// may or may not be among them; one that was acknowledged before this call is. `corruption` for a
/// damaged pin: nothing may be trimmed then.
Result<std::vector<Pin>> list_pins(const Stream& stream, const CallOptions& call);
Result<std::vector<Pin>> list_pins(const Stream& stream, const std::string& group,
                                   const CallOptions& call);

/// Ok, or `not_found` naming first_step where `step` was trimmed.
Status check_not_trimmed(const Head& head, Step step);

/// Steps 2 to 4 for whatever keeps `step`, already put and acknowledged. `not_found` where it came
/// too late. Safe to repeat.
Status confirm_kept(const Stream& stream, ManifestReader& reader, Step step,
                    const CallOptions& call);

}  // namespace batchloom::store
