// SPDX-License-Identifier: Apache-2.0
// Records of several parts, read once for all of them: without this each order would read the
// whole record again for the parts that it brings.
//
//  1. Who asks first reads. Whoever asks for the same record meanwhile waits for that.
//  2. Those used last are kept, up to a bound in bytes, and the newest however large. What is
//     dropped lives on for those who have it.
//  3. An error is that of who read; the next one reads again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/construction/monitor.h"
#include "batchloom/model/ids.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::control {

/// What reading a record came to. Immutable once it is shared.
struct ReadRecord {
  sources::Record record;  ///< Only its place, where it is bad.
  std::optional<sources::BadRecord> bad;
};
using ReadRecordPtr = std::shared_ptr<const ReadRecord>;

/// Thread-safe.
class LongRecords {
 public:
  using Read = std::function<Result<ReadRecord>()>;
  struct Name {
    model::SourceId source;
    model::RecordIndex record;
    friend bool operator==(const Name&, const Name&) = default;
  };

  /// `runtime` outlives it.
  LongRecords(Runtime& runtime, std::uint64_t bytes_max)
      : bytes_max_(bytes_max), state_(runtime, State()) {}

  /// The record, from read() unless it is kept. Waits while another thread reads it. Errors: those
  /// of read(), and what ends `call`.
  Result<ReadRecordPtr> get(const Name& name, const Read& read, const CallOptions& call);

 private:
  struct Kept {
    Name name;
    ReadRecordPtr record;  ///< Null while it is being read.
    std::uint64_t bytes = 0;
  };
  struct State {
    std::vector<Kept> kept;  ///< Those asked for last at the end.
    std::uint64_t bytes = 0;
  };

  static std::vector<Kept>::iterator find(State& state, const Name& name);
  void keep(const Name& name, const ReadRecordPtr& record);

  const std::uint64_t bytes_max_;
  construction::Monitor<State> state_;
};

}  // namespace batchloom::control
