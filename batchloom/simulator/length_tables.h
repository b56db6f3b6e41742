// SPDX-License-Identifier: Apache-2.0
// What tools/generate_tables.py makes of lengths/length-distributions.json.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace batchloom::simulator {

/// Lengths in (above, up_to], each as likely as its reciprocal (log-uniform), at most an octave
/// where `above` is not 0. Of all samples, weight / (sum of the weights) are of this range.
struct LengthRange {
  std::uint32_t above = 0;
  std::uint32_t up_to = 0;
  std::uint64_t weight = 0;
};

/// Ranges ascend; they need not touch.
struct LengthTable {
  std::string_view name;
  std::span<const LengthRange> ranges;
};

/// The distributions of the file, in its order.
std::span<const LengthTable> length_tables();

}  // namespace batchloom::simulator
