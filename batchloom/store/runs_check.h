// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/store/batch_index.h"
#include "batchloom/store/run.h"

namespace batchloom::store {

/// What an object's runs hold, beside what its index says. One thread at a time.
class RunsCheck {
 public:
  /// `index` outlives it.
  explicit RunsCheck(const BatchIndex& index);

  /// What is wrong with the run, if anything.
  std::optional<std::string> add(const Run& run);

  /// Once all runs were added: the first sample of which other labels count than its plan says. No
  /// run shows that by itself where several ranks hold the sample.
  std::optional<std::string> check_labels(std::uint32_t position) const;

 private:
  const BatchIndex& index_;
  std::vector<std::vector<std::vector<RunEvent>>> events_;  // By step and rank.
  std::vector<std::vector<std::uint64_t>> labels_;          // By step and sample.
};

}  // namespace batchloom::store
