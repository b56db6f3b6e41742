// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/whole_number.h"

#include <fmt/format.h>

#include <string>

#include "python/bindings/errors.h"
#include "python/bindings/module.h"

namespace batchloom::python {

namespace nb = nanobind;

std::int64_t whole_number(std::string_view name, nb::handle value) {
  const bool is_bool = PyBool_Check(value.ptr());
  const nb::object number = is_bool ? nb::object() : nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    const std::string shown = nb::cast<std::string>(nb::repr(value));
    const std::string type = nb::cast<std::string>(value.type().attr("__name__"));
    throw nb::type_error(
        fmt::format("{}={}: a whole number is needed, not {}", name, shown, type).c_str());
  }
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return result;
  throw StatusError(Status::invalid(fmt::format("{}={}: a whole number of 64 bits is needed", name,
                                                nb::cast<std::string>(nb::str(number)))));
}

void bind_whole_number(nb::module_& module) {
  module.def("whole_number", whole_number, nb::arg("name"), nb::arg("value").none(),
             nb::sig("def whole_number(name: str, value: object) -> int"),
             "The argument `name` as an int: NumPy's and torch's are taken. TypeError, naming it, "
             "for bools and for whatever else is no whole number.");
}

}  // namespace batchloom::python
