// SPDX-License-Identifier: Apache-2.0
// Calls that wait, as Python expects of them: without the GIL, and ended by Ctrl-C.
#pragma once

#include <functional>

#include "batchloom/base/runtime.h"

namespace batchloom::python {

/// How long Ctrl-C may be unheard.
inline constexpr std::chrono::milliseconds kSignalPause{100};

/// Runs `body` on another thread, without the GIL, until it is done. A signal whose handler raises
/// stops it, and goes on from here when it has stopped. `body` must not touch Python.
void run_without_gil(Runtime& runtime, const std::function<void(std::stop_token)>& body);

/// Runs the handlers of signals that have come; throws what they raise. Needs the GIL.
void check_signals();

}  // namespace batchloom::python
