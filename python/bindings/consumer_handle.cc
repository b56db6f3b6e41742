// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/consumer_handle.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/state_text.h"
#include "python/bindings/blocking.h"
#include "python/bindings/errors.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

/// For requests that nobody has set a deadline for.
constexpr std::chrono::seconds kRequestTimeout{60};
/// A step that is ready is handed out, whatever the timeout.
constexpr std::chrono::milliseconds kShortestLook{1};
/// Longer timeouts are none.
constexpr double kForeverSeconds = 1e9;

}  // namespace

Duration to_duration(std::string_view name, double seconds) {
  if (std::isnan(seconds) || seconds < 0) {
    throw StatusError(Status::invalid(
        fmt::format("{}={}: a number of seconds from 0 on is needed", name, seconds)));
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kForeverSeconds)));
}

/// One thread's use of the reader. Made and gone with the GIL.
class ConsumerHandle::Turn {
 public:
  /// Refuses to be a second one.
  explicit Turn(const ConsumerHandle& handle) : handle_(handle) {
    handle.check_process();  // A forked process must not find it in use for ever.
    if (handle.turn_ != nullptr && !handle.turn_->closes_) {
      throw StatusError(Status::invalid(
          "this Consumer is in use by another thread: give each thread one of its own"));
    }
    if (handle.turn_ != nullptr) throw was_closed();
    static_cast<void>(handle.reader());
    handle.turn_ = this;
  }

  struct Closes {};
  /// The last one: stops that of another thread, and waits for its end.
  Turn(const ConsumerHandle& handle, Closes) : handle_(handle), closes_(true) {
    while (handle.turn_ != nullptr) handle.turn_->stop_and_wait();
    handle.turn_ = this;
  }

  ~Turn() {
    handle_.turn_ = nullptr;
    handle_.turn_over_->set();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const std::stop_source& stop() const { return stop_; }

  template <class T>
  T or_raise(Result<T> result) const {
    check(result.status());
    return python::or_raise(std::move(result));
  }
  void or_raise(const Status& status) const {
    check(status);
    python::or_raise(status);
  }

 private:
  static StatusError was_closed() {
    return StatusError(Status::cancelled("the Consumer was closed"));
  }

  void stop_and_wait() {
    if (thread_ == PyThread_get_thread_ident()) {
      throw StatusError(Status::invalid(
          "this Consumer is closed by the handler of a signal that came while this same thread "
          "uses it: raise an exception there, and close it behind the call"));
    }
    if (!closes_) stop_.request_stop();
    const ConsumerHandle& handle = handle_;  // This turn's end comes first.
    handle.turn_over_->reset();
    wait_without_gil(*handle.runtime_, *handle.turn_over_);
  }

  /// Says who has stopped it.
  void check(const Status& status) const {
    if (!stop_.stop_requested() || !status.is(ErrorKind::kCancelled)) return;
    check_interpreter();
    throw was_closed();
  }

  const ConsumerHandle& handle_;
  const unsigned long thread_ = PyThread_get_thread_ident();
  const bool closes_ = false;
  std::stop_source stop_;
};

template <class Call>
auto ConsumerHandle::blocking(const Turn& turn, const Call& call) const {
  std::optional<decltype(call(CallOptions()))> answer;
  run_without_gil(
      *runtime_,
      [&](std::stop_token stop) { answer.emplace(call(within(kRequestTimeout, std::move(stop)))); },
      turn.stop());
  return turn.or_raise(*std::move(answer));
}

CallOptions ConsumerHandle::within(Duration timeout, std::stop_token stop) const {
  return {.deadline = runtime_->now() + timeout, .stop = std::move(stop)};
}

client::RankStart find_start(const client::RankReaderOptions& options, Duration open_timeout) {
  const std::unique_ptr<Runtime> runtime = make_real_runtime();
  std::optional<Result<client::RankStart>> found;
  run_without_gil(*runtime, [&](std::stop_token stop) {
    found.emplace(client::RankReader::find_start(
        *runtime, options, {.deadline = runtime->now() + open_timeout, .stop = std::move(stop)}));
  });
  return or_raise(*std::move(found));
}

ConsumerHandle::ConsumerHandle(client::RankReaderOptions options, Duration open_timeout)
    : process_(getpid()), runtime_(make_real_runtime()), turn_over_(runtime_->make_event()) {
  std::optional<Result<std::unique_ptr<client::RankReader>>> opened;
  run_without_gil(*runtime_, [&](std::stop_token stop) {
    opened.emplace(client::RankReader::open(*runtime_, std::move(options),
                                            within(open_timeout, std::move(stop))));
  });
  reader_ = or_raise(*std::move(opened));
}

ConsumerHandle::~ConsumerHandle() {
  release();
  if (getpid() == process_) return;
  static_cast<void>(reader_.release());
  static_cast<void>(turn_over_.release());
  static_cast<void>(runtime_.release());
}

void ConsumerHandle::check_process() const {
  if (getpid() == process_) return;
  throw StatusError(Status::invalid(fmt::format(
      "this Consumer was opened by process {}, and this is process {}, forked since: its threads "
      "stayed behind. Open a Consumer in each process, after the fork",
      process_, getpid())));
}

client::RankReader& ConsumerHandle::reader() const {
  check_process();
  if (reader_ == nullptr) throw StatusError(Status::cancelled("the Consumer was closed"));
  return *reader_;
}

std::shared_ptr<const client::RankBatch> ConsumerHandle::next(
    const std::optional<Duration>& timeout) {
  const Turn turn(*this);
  const WaitingCall call(turn.stop());
  const Time deadline = timeout ? runtime_->now() + *timeout : kNever;
  for (;;) {
    Result<std::shared_ptr<const client::RankBatch>> batch = [&] {
      const nb::gil_scoped_release released;
      const Time now = runtime_->now();
      return reader_->next(
          {.deadline = std::clamp(deadline, now + kShortestLook, now + kSignalPause),
           .stop = turn.stop().get_token()});
    }();
    // Not after a step came, which an exception would lose.
    if (!batch.is(ErrorKind::kUnavailable)) return turn.or_raise(std::move(batch));
    check_signals();
    if (runtime_->now() >= deadline) return turn.or_raise(std::move(batch));
  }
}

void ConsumerHandle::pin(std::string_view state, const std::string& name,
                         const std::optional<std::uint64_t>& keep) {
  const Turn turn(*this);
  const client::ConsumerState parsed = or_raise(client::parse_state(state));
  blocking(turn, [&](const CallOptions& call) { return reader_->pin(parsed, name, keep, call); });
}

std::uint64_t ConsumerHandle::unpin(const std::string& name) {
  const Turn turn(*this);
  return blocking(turn, [&](const CallOptions& call) { return reader_->unpin(name, call); });
}

void ConsumerHandle::seek(std::string_view state) {
  const Turn turn(*this);
  const client::ConsumerState parsed = or_raise(client::parse_state(state));
  blocking(turn, [&](const CallOptions& call) { return reader_->seek(parsed, call); });
}

void ConsumerHandle::skip_to(std::uint64_t step) {
  const Turn turn(*this);
  client::ConsumerState state = reader_->state();
  state.next_step = store::Step(step);
  blocking(turn, [&](const CallOptions& call) { return reader_->seek(state, call); });
}

void ConsumerHandle::close() {
  if (closed_ || reader_ == nullptr) return;
  check_process();
  const Turn turn(*this, Turn::Closes());
  if (closed_ || reader_ == nullptr) return;  // By the turn that it has waited for.
  blocking(turn, [&](const CallOptions& call) { return reader_->close(call); });
  closed_ = true;
}

void ConsumerHandle::release() {
  if (reader_ == nullptr || getpid() != process_) return;
  const Turn turn(*this, Turn::Closes());
  // Others that have the GIL find nothing to use.
  std::unique_ptr<client::RankReader> reader = std::move(reader_);
  if (interpreter_ends()) return;  // With the GIL: it might never be had again.
  const WaitingCall call;
  const nb::gil_scoped_release released;
  reader.reset();
}

client::ConsumerState ConsumerHandle::state() const {
  return reader().state();
}

std::uint64_t ConsumerHandle::slot() const {
  return reader().opened_with().value;
}

std::vector<std::uint64_t> ConsumerHandle::skipped() const {
  std::vector<std::uint64_t> steps;
  for (const store::Step step : reader().skipped()) steps.push_back(step.value);
  return steps;
}

std::map<std::string, std::uint64_t> ConsumerHandle::counters() const {
  return reader().counters();
}

}  // namespace batchloom::python
