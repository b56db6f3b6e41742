// SPDX-License-Identifier: Apache-2.0
// The extension batchloom._core: what python/batchloom dresses up. Every file here binds one
// concept. Only here are the GIL, Python's signals, and errors as exceptions.
#include "python/bindings/module.h"

#include <nanobind/nanobind.h>

NB_MODULE(_core, module) {
  namespace python = batchloom::python;
  // Daemon threads, and those that a fork left behind, hold objects to the end: these are no leaks.
  nanobind::set_leak_warnings(false);
  module.attr("__version__") = BATCHLOOM_VERSION;
  python::bind_errors(module);
  python::bind_whole_number(module);
  python::bind_topology(module);
  python::bind_plan(module);
  python::bind_stored(module);
  python::bind_batch(module);
  python::bind_consumer(module);
}
