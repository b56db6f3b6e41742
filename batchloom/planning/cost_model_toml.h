// SPDX-License-Identifier: Apache-2.0
// Cost models in files: docs/formats/cost_model.md.
#pragma once

#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

/// What parse_cost_model() makes the same model of.
std::string to_toml(const CostModel& model);

/// `name` stands in messages: the file's path. `invalid`, naming line and key: text that is no
/// TOML, keys that are missing, unknown or out of range, points that are no curve (CostCurve).
Result<CostModel> parse_cost_model(std::string_view text, std::string_view name);

}  // namespace batchloom::planning
