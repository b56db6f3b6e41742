// SPDX-License-Identifier: Apache-2.0
// Records of several parts, read once for all of them: without this each order would read the
// whole record again for the parts that it brings.
//
//  1. Who asks first reads. Whoever asks for the same record meanwhile waits for that.
//  2. Those used last are kept, up to a bound in bytes, and the newest however large. What is
//     dropped lives on for those who have it.
//  3. What is being read counts from the begin, by what it is expected to take: older ones go for
//     it, and where those that are being read would exceed the bound together, it waits for them.
//     Such turns go by arrival: a large record is not passed by smaller ones. Who reads waits for
//     no turn, so the first one's comes.
//  4. An error is that of who read; the next one reads again.
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

  struct Wanted {
    Name name;
    std::uint64_t ids = 0;  ///< That it has, as planning knows it.
  };

  /// The record, from read() unless it is kept. Waits while another thread reads it, or reads so
  /// much that this one has no room beside it. Errors: those of read(), and what ends `call`.
  Result<ReadRecordPtr> get(const Wanted& wanted, const Read& read, const CallOptions& call);

  /// Of all records that are kept or being read.
  std::uint64_t bytes() const;
  /// Calls that wait for their turn to read.
  std::size_t waiting() const;

 private:
  struct Kept {
    Name name;
    ReadRecordPtr record;  ///< Null while it is being read.
    std::uint64_t bytes = 0;
  };
  /// Of a call that is to read.
  struct Turn {
    std::uint64_t number = 0;
    Name name;
  };
  struct State {
    std::vector<Kept> kept;  ///< Those asked for last at the end.
    std::uint64_t bytes = 0;
    std::uint64_t read_bytes = 0;  ///< Of these, of what is being read.
    std::vector<Turn> turns;       ///< By arrival; of records that nobody reads.
    std::uint64_t next_turn = 0;
  };
  using Dropped = std::vector<ReadRecordPtr>;  ///< To be freed outside of the lock.

  static std::vector<Kept>::iterator find(State& state, const Name& name);
  bool has_room(const State& state, std::uint64_t bytes) const;
  /// A record that a call asks for, and how far the call is.
  struct Asked {
    Name name;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> turn = {};  ///< Kept until the call ends.
    ReadRecordPtr found = nullptr;
    bool is_mine = false;  ///< To read.
  };
  void look(State& state, Asked& asked, Dropped& dropped) const;
  /// Whether another look would find or begin.
  bool may_go_on(const State& state, const Asked& asked) const;
  /// The record, or null where the caller is to read it: it counts from now on.
  Result<ReadRecordPtr> find_or_begin(Asked asked, const CallOptions& call);
  /// All but the last one may go.
  void drop_oldest(State& state, Dropped& dropped) const;
  static void end_reading(State& state, std::vector<Kept>::iterator own);
  void keep(const Name& name, const ReadRecordPtr& record);

  const std::uint64_t bytes_max_;
  construction::Monitor<State> state_;
};

}  // namespace batchloom::control
