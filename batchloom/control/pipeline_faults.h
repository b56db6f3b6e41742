// SPDX-License-Identifier: Apache-2.0
// What is wrong with a pipeline file: all of it at once, each fault with its line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::control {

/// The lines of what the file says, by path; those of sources begin with source_path(). What is
/// not in here has its default.
using KeyLines = std::map<std::string, std::uint32_t, std::less<>>;

/// "source[3]": where the keys of the fourth source stand in KeyLines.
std::string source_path(std::size_t source);

/// The line of a key, or of the nearest table around it that the file has; else 1.
std::uint32_t line_of(const KeyLines& lines, std::string_view path);

/// `text` for a message: in quotes, what cannot be printed escaped, and cut where it is long.
std::string shown(std::string_view text);

/// One thread at a time.
class PipelineFaults {
 public:
  /// Cuts a text that is long, as one is that quotes what somebody wrote.
  void add(std::uint32_t line, std::string text);
  bool empty() const { return faults_.empty(); }

  /// Ok without faults, else `invalid`: the file's name, and faults with lines, in their order. A
  /// few are told, the others counted.
  Status to_status(std::string_view file) const;

 private:
  struct Fault {
    std::uint32_t line = 1;
    std::string text;
  };
  std::vector<Fault> faults_;
};

}  // namespace batchloom::control
