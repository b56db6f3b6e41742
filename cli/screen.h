// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/top_view.h"

namespace batchloom::cli {

/// Stdout as a terminal that a view fills, and keys are read from; where stdout is none, views are
/// printed one after the other, without any escape code. One thread at a time, at most one of them.
class Screen {
 public:
  /// Takes the terminal over where there is one.
  Screen();
  /// The terminal is as it was. So it is where the process is forced to end (stop_signals.h).
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_terminal() const { return is_terminal_; }
  /// What there is room for now.
  TopRoom room() const;
  /// Instead of what was shown before, or behind it.
  void show(std::string_view text) const;
  /// Whether q was typed since it was last asked for. Does not block.
  bool wants_to_quit() const;

 private:
  const bool is_terminal_;
};

}  // namespace batchloom::cli
