// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/blocking.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/errors.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

/// Those of this process. What is no atomic is guarded by the GIL.
struct Calls {
  pid_t process = getpid();
  std::vector<WaitingCall*> under_way;
  std::atomic<std::uint32_t> over = 0;         ///< So many, ever.
  std::optional<unsigned long> ending_thread;  ///< That of end_all_calls().

  bool other_threads_wait() const {
    return std::ranges::any_of(
        under_way, [this](const WaitingCall* call) { return call->thread() != ending_thread; });
  }
};

Calls& calls() {
  static Calls calls;
  // The threads of a forked process stayed behind, and so did their calls.
  if (std::exchange(calls.process, getpid()) != getpid()) calls.under_way.clear();
  return calls;
}

/// Waits for `event`. Needs the GIL to be let go of.
void wait_hearing_signals(Runtime& runtime, Event& event) {
  while (!event.wait({.deadline = runtime.now() + kSignalPause}).is_ok()) {
    const nb::gil_scoped_acquire acquired;
    check_signals();
  }
}

}  // namespace

WaitingCall::WaitingCall(std::stop_source stop)
    : stop_(std::move(stop)), thread_(PyThread_get_thread_ident()) {
  check_interpreter();
  calls().under_way.push_back(this);
}

WaitingCall::~WaitingCall() {
  Calls& all = calls();
  std::erase(all.under_way, this);
  ++all.over;
  all.over.notify_all();
}

void end_all_calls() {
  Calls& all = calls();
  all.ending_thread = PyThread_get_thread_ident();
  for (WaitingCall* call : all.under_way) call->request_stop();
  while (all.other_threads_wait()) {
    const std::uint32_t over = all.over;
    const nb::gil_scoped_release released;
    all.over.wait(over);
  }
}

bool interpreter_ends() {
  return calls().ending_thread.has_value();
}

void check_interpreter() {
  if (!interpreter_ends()) return;
  if (calls().ending_thread == PyThread_get_thread_ident()) {
    throw StatusError(Status::cancelled("the interpreter ends: nothing can be waited for"));
  }
  PyErr_SetNone(PyExc_SystemExit);
  throw nb::python_error();
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void wait_without_gil(Runtime& runtime, Event& event) {
  {
    const WaitingCall call;
    const nb::gil_scoped_release released;
    wait_hearing_signals(runtime, event);
  }
  check_interpreter();
}

void run_without_gil(Runtime& runtime, const std::function<void(std::stop_token)>& body,
                     const std::stop_source& stop) {
  {
    const WaitingCall call(stop);
    const nb::gil_scoped_release released;
    const std::unique_ptr<Event> done = runtime.make_event();
    // Where a signal's exception leaves this function, it is stopped and waited for.
    const std::unique_ptr<Task> task =
        runtime.spawn("python-call", [&](const std::stop_token& stopped) {
          body(stopped);
          done->set();
        });
    const std::stop_callback asked(stop.get_token(), [&] { task->request_stop(); });
    wait_hearing_signals(runtime, *done);
  }
  check_interpreter();
}

}  // namespace batchloom::python
