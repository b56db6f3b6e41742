// SPDX-License-Identifier: Apache-2.0
// Another program, and a channel to it: what it reads as its standard input and writes to the same
// descriptor. What it prints, to stdout as to stderr, is kept apart, as lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"

namespace batchloom {

/// A program to be started.
struct ChildCommand {
  /// The first is the program, sought on PATH where it has no slash.
  std::vector<std::string> arguments;
  /// Called with each line that it prints, within read() and write(). May be empty.
  std::function<void(std::string_view line)> on_line = {};
};

/// A running program. It has no descriptors but its own three, no blocked signals, and a process
/// group of its own, so that a terminal's Ctrl-C is left to us. The kernel kills it where the
/// thread that started it ends. Only on real machines: deadlines count on the real Runtime's clock.
/// One thread at a time.
class ChildProcess {
 public:
  /// `invalid`: no such program, or none that may be run. `exhausted`: no room for one more.
  static Result<std::unique_ptr<ChildProcess>> start(ChildCommand command);
  /// Kills it, and waits until it is gone.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// All of `bytes`, blocking for as long as the program does not read. `unavailable`: the deadline
  /// passed, or the program has ended, and how; `cancelled` by the stop token.
  Status write(ByteSpan bytes, const CallOptions& call);
  /// Fills `out`. Blocks and fails as write().
  Status read(std::span<std::byte> out, const CallOptions& call);

  int id() const { return id_; }
  /// The last lines that it printed, of 2 KiB at most.
  std::string last_lines() const;

 private:
  ChildProcess(ChildCommand command, int id, int channel, int printed);

  /// Waits until the channel is ready for `events`, and takes what is printed meanwhile.
  Status wait_for(short events, const CallOptions& call);
  void take_printed();
  void tell_lines();
  /// After the channel was closed: how it ended.
  Status ended();

  const ChildCommand command_;
  const int id_;
  int channel_;
  int printed_;
  bool is_reaped_ = false;
  std::string line_;  ///< The begin of one that is not whole yet.
  std::string last_;
};

}  // namespace batchloom
