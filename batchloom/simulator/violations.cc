// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/violations.h"

#include <fmt/format.h>

namespace batchloom::simulator {
namespace {

constexpr std::size_t kViolationsKept = 8;

}  // namespace

void Violations::add(std::string_view rule, std::string_view text) {
  if (texts_.size() < kViolationsKept) texts_.push_back(fmt::format("{}: {}", rule, text));
}

}  // namespace batchloom::simulator
