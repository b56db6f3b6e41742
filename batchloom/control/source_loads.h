// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/model/ids.h"

namespace batchloom::control {

/// What loading has cost of one source.
struct SourceLoad {
  std::uint64_t bytes = 0;  ///< Of blocks that came, those of steps forgotten since included.
  Duration busy{};          ///< Of all threads together, bringing it.
  Duration waited{};        ///< While the oldest step was asked for and lacked this source.

  friend bool operator==(const SourceLoad&, const SourceLoad&) = default;
};

/// Counts that, by source. A wait is dealt out as it passes: from one delivery to the next it is
/// of the source that the oldest step lacked first, so that all waits add up to the time waited.
/// One thread at a time.
class SourceLoads {
 public:
  /// The oldest step is asked for, and has not come.
  void begin_wait(Time now) { since_ = now; }
  /// What was waited since the last call is the source's; nobody's where it is absent.
  void charge(std::optional<model::SourceId> source, Time now);
  /// charge(), and nobody waits any more.
  void end_wait(std::optional<model::SourceId> source, Time now);
  /// An order came back, with so many bytes, after so long.
  void brought(model::SourceId source, std::uint64_t bytes, Duration busy);

  /// By SourceId, up to the last one that was named. A wait that goes on counts until `now`.
  std::vector<SourceLoad> look(std::optional<model::SourceId> source, Time now) const;

 private:
  SourceLoad& of(model::SourceId source);

  std::vector<SourceLoad> loads_;
  std::optional<Time> since_;
};

}  // namespace batchloom::control
