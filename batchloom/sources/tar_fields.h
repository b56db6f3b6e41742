// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/record_fields.h"

namespace batchloom::sources {

/// Where in a sample of a tar a field is found.
struct MemberField {
  std::string member;  ///< Its extension, with capitals made small.
  /// Of the object that the member's JSON is; empty: the field is all that the member holds.
  std::string field;

  friend bool operator==(const MemberField&, const MemberField&) = default;
};

/// What a name in a pipeline's fields says: "txt" is a member; "json.caption" is a field of the
/// member "json", since something stands behind a part "json".
MemberField member_field(std::string_view name);

/// The text; or the prompt, and the answer; or the ids, and, where `loss_on` looks at it, the mask.
std::vector<MemberField> member_fields(const RecordFields& fields, LossOn loss_on);

}  // namespace batchloom::sources
