// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace nanobind __attribute__((visibility("hidden"))) {
  class handle;
}

namespace batchloom::python {

/// The argument `name` as a number: those of Python, of NumPy and of torch are taken. TypeError,
/// naming the argument, for a bool, for text and for whatever else is no whole number; Invalid for
/// one that 64 bits do not hold.
std::int64_t whole_number(std::string_view name, nanobind::handle value);

}  // namespace batchloom::python
