// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/graph_spec.h"

#include <array>

namespace batchloom::planning {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kModalityNames = {"text"sv, "image"sv};
constexpr std::array kBalanceNames = {"none"sv,      "lpt"sv, "kk"sv,
                                      "two_level"sv, "hdp"sv, "two_module"sv};

}  // namespace

std::string_view to_string(Modality modality) {
  return kModalityNames[static_cast<std::size_t>(modality)];
}

std::string_view to_string(Balance balance) {
  return kBalanceNames[static_cast<std::size_t>(balance)];
}

std::span<const std::string_view> modality_names() {
  return kModalityNames;
}

std::span<const std::string_view> balance_names() {
  return kBalanceNames;
}

const SelectionSpec* GraphSpec::find(Modality modality) const {
  for (const SelectionSpec& selection : selections) {
    if (selection.modality == modality) return &selection;
  }
  return nullptr;
}

}  // namespace batchloom::planning
