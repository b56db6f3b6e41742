// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/simulator/step_lengths.h"
#include "cli/args.h"

namespace batchloom::cli {

/// What --lengths names, opened once: a distribution, or the lengths of a file.
struct LengthsInput {
  std::string name;
  bool is_file = false;
  std::vector<std::uint32_t> lengths;  ///< Of a file, as they stand there.

  /// Those above the context, which are left out.
  std::uint64_t too_long(std::uint32_t context_tokens) const;
  /// Errors: those of simulator::lengths_of_steps().
  Result<simulator::LengthsByStep> draw(const simulator::StepLengths& wanted) const;
};

/// A file is read where no distribution has the name. Errors: those of read_lengths(); where there
/// is no file either, the message lists the distributions.
Result<LengthsInput> open_lengths(const LengthsArgs& args);

}  // namespace batchloom::cli
