// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace batchloom::simulator {

/// Collects broken rules: "I6: ...". Only the first few are kept.
class Violations {
 public:
  void add(std::string_view rule, std::string_view text);
  bool empty() const { return texts_.empty(); }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace batchloom::simulator
