// SPDX-License-Identifier: Apache-2.0
// The command line as plain structs. Only args.cc knows how it is parsed; everything that can be
// refused without touching data is refused there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "batchloom/simulator/store_sim.h"
#include "batchloom/store/ids.h"
#include "cli/open_url.h"

namespace batchloom::cli {

/// What all commands on a stream take.
struct StreamArgs {
  StoreLocation location;
  bool json = false;
};

/// `batchloom store init URL`
struct StoreInit {
  StreamArgs stream;
};

/// `batchloom store ls URL [--from STEP] [--limit N]`
struct StoreLs {
  StreamArgs stream;
  std::optional<store::Step> from;  ///< The oldest step where absent.
  std::uint64_t limit = UINT64_MAX;
};

/// `batchloom store show URL [--slot N | --step N]`: the newest head where neither is given.
struct StoreShow {
  StreamArgs stream;
  std::optional<store::Slot> slot;
  std::optional<store::Step> step;
};

/// `batchloom store verify URL`
struct StoreVerify {
  StreamArgs stream;
};

/// `batchloom store fence URL --producer NAME`
struct StoreFence {
  StreamArgs stream;
  std::string producer;
};

/// `batchloom store probe URL [--size BYTES]`
struct StoreProbe {
  StreamArgs stream;
  std::size_t size_bytes = 0;
};

/// `batchloom sim store ...`
struct SimStore {
  simulator::SimOptions options;
  bool json = false;
};

using Command =
    std::variant<StoreInit, StoreLs, StoreShow, StoreVerify, StoreFence, StoreProbe, SimStore>;

/// An exit code of the process.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2 };

/// Parsing was all there was to do: help, the version, or a wrong command line.
struct Answer {
  ExitCode exit_code = kDone;
  std::string out;  ///< For stdout.
  std::string err;  ///< For stderr.
};

/// `args` are those of main(), the program's name first. `version` is what --version says.
std::variant<Command, Answer> parse_args(std::span<const char* const> args,
                                         std::string_view version);

}  // namespace batchloom::cli
