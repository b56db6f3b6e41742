// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/errors.h"

#include <nanobind/nanobind.h>

#include "python/bindings/module.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

const char* exception_name(const Status& status) {
  switch (status.error_case()) {
    case ErrorCase::kDoesNotFit: return "DoesNotFit";
    case ErrorCase::kResumeMissing: return "ResumeMissing";
    case ErrorCase::kSplitSamples:
    case ErrorCase::kNone: break;
  }
  switch (status.kind()) {
    case ErrorKind::kInvalid: return "Invalid";
    case ErrorKind::kNotFound: return "NotFound";
    case ErrorKind::kConflict: return "Conflict";
    case ErrorKind::kFenced: return "Fenced";
    case ErrorKind::kUnavailable: return "Unavailable";
    case ErrorKind::kUnknownOutcome: return "UnknownOutcome";
    case ErrorKind::kCorruption: return "Corruption";
    case ErrorKind::kExhausted: return "Exhausted";
    case ErrorKind::kCancelled: return "Cancelled";
    case ErrorKind::kInternal: break;
  }
  return "Internal";
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const nb::object type =
        nb::module_::import_("batchloom.errors").attr(exception_name(error.status()));
    PyErr_SetString(type.ptr(), error.what());
  }
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator(translate);
}

}  // namespace batchloom::python
