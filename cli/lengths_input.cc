// SPDX-License-Identifier: Apache-2.0
#include "cli/lengths_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "batchloom/simulator/length_distributions.h"
#include "batchloom/simulator/length_files.h"

namespace batchloom::cli {

std::uint64_t LengthsInput::too_long(std::uint32_t context_tokens) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      lengths, [&](std::uint32_t length) { return length > context_tokens; }));
}

Result<simulator::LengthsByStep> LengthsInput::draw(const simulator::StepLengths& wanted) const {
  return is_file ? simulator::lengths_of_steps(lengths, wanted)
                 : simulator::lengths_of_steps(name, wanted);
}

Result<LengthsInput> open_lengths(const LengthsArgs& args) {
  const auto names = simulator::length_distribution_names();
  if (std::ranges::find(names, args.lengths) != names.end()) {
    if (args.column.empty())
      return LengthsInput{.name = args.lengths, .is_file = false, .lengths = {}};
    return Status::invalid(
        fmt::format("--column: {} is a distribution, which has no columns", args.lengths));
  }
  auto lengths = simulator::read_lengths({.path = args.lengths, .column = args.column});
  if (lengths.is(ErrorKind::kNotFound)) {
    return Status::not_found(fmt::format("{}, and no distribution of that name; there are {}",
                                         lengths.status().message(), fmt::join(names, ", ")));
  }
  if (!lengths.is_ok()) return lengths.status();
  return LengthsInput{.name = args.lengths, .is_file = true, .lengths = *std::move(lengths)};
}

}  // namespace batchloom::cli
