// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/client/rank_reader.h"

namespace batchloom::python {

/// A RankReader with the threads behind it, as Python holds one: in the process that opened it, by
/// one thread at a time, and until it is closed. Functions need the GIL, which guards the members;
/// they throw StatusError, what signals raise, and as check_interpreter().
class ConsumerHandle {
 public:
  /// Waits for the stream at most so long.
  ConsumerHandle(client::RankReaderOptions options, Duration open_timeout);
  /// As release(). In a forked process, whose threads stayed behind, nothing is let go.
  ~ConsumerHandle();
  ConsumerHandle(const ConsumerHandle&) = delete;
  ConsumerHandle& operator=(const ConsumerHandle&) = delete;

  /// Null at the end of the stream; `unavailable` after the timeout.
  std::shared_ptr<const client::RankBatch> next(const std::optional<Duration>& timeout);
  void pin(std::string_view state, const std::string& name,
           const std::optional<std::uint64_t>& keep);
  std::uint64_t unpin(const std::string& name);
  void seek(std::string_view state);
  /// Goes on at `step`, as if those before it had been handed out.
  void skip_to(std::uint64_t step);
  /// Closes the group's cursor, where this rank reports it, and ends reading. Idempotent. What
  /// another thread waits for is `cancelled`.
  void close();
  /// Ends reading, and leaves the group's cursor open. Idempotent; nothing in a forked process. As
  /// close(), what another thread waits for is `cancelled`.
  void release();

  client::ConsumerState state() const;
  std::uint64_t slot() const;
  std::vector<std::uint64_t> skipped() const;
  std::map<std::string, std::uint64_t> counters() const;

 private:
  class Turn;

  void check_process() const;
  /// Throws where it was closed, and in a forked process.
  client::RankReader& reader() const;
  /// What `call` says, made without the GIL.
  template <class Call>
  auto blocking(const Turn& turn, const Call& call) const;
  CallOptions within(Duration timeout, std::stop_token stop = {}) const;

  const pid_t process_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<client::RankReader> reader_;  ///< Null once it was released.
  mutable Turn* turn_ = nullptr;                ///< The one under way.
  std::unique_ptr<Event> turn_over_;            ///< Set with each turn's end.
  bool closed_ = false;
};

/// RankReader::find_start(). Throws as ConsumerHandle's constructor.
client::RankStart find_start(const client::RankReaderOptions& options, Duration open_timeout);

/// A timeout in seconds; StatusError for one that is negative or no number.
Duration to_duration(std::string_view name, double seconds);

}  // namespace batchloom::python
