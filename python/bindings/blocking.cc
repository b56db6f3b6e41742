// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/blocking.h"

#include <nanobind/nanobind.h>

namespace batchloom::python {

namespace nb = nanobind;

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void run_without_gil(Runtime& runtime, const std::function<void(std::stop_token)>& body) {
  const nb::gil_scoped_release released;
  const std::unique_ptr<Event> done = runtime.make_event();
  // Last: where a signal's exception leaves this function, it is stopped and waited for.
  const std::unique_ptr<Task> task = runtime.spawn("python-call", [&](const std::stop_token& stop) {
    body(stop);
    done->set();
  });
  while (!done->wait({.deadline = runtime.now() + kSignalPause}).is_ok()) {
    const nb::gil_scoped_acquire acquired;
    check_signals();
  }
}

}  // namespace batchloom::python
