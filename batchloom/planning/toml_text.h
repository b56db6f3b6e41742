// SPDX-License-Identifier: Apache-2.0
// How values of planning stand in TOML: what sample graphs and pipelines write alike.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/schedule.h"

namespace batchloom::planning {

// All names, in the order of the values.
std::span<const std::string_view> order_names();      ///< Of Order.
std::span<const std::string_view> exhausted_names();  ///< Of Exhausted.
std::span<const std::string_view> ramp_names();       ///< Of Ramp.

/// `text` in double quotes.
std::string toml_quoted(std::string_view text);

/// The weight as a decimal number, exactly.
std::string toml_number(Weight weight);
/// One number for a weight that never changes, else a list of { step, value, ramp }.
std::string toml_weight(const Schedule& schedule);

/// The nearest weight. `invalid`, saying what is wrong with the number: one below 0, above
/// kMaxWeight or not finite, and one so small that it would become 0.
Result<Weight> weight_of_number(double number);

}  // namespace batchloom::planning
