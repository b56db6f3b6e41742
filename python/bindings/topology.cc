// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/topology.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"
#include "python/bindings/errors.h"
#include "python/bindings/module.h"
#include "python/bindings/whole_number.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;
using model::Topology;

std::uint32_t extent_of(const Topology& topology, std::string_view name) {
  for (const model::Axis axis :
       {model::Axis::kPp, model::Axis::kDp, model::Axis::kCp, model::Axis::kTp}) {
    if (model::to_string(axis) == name) return topology.extent(axis);
  }
  throw StatusError(
      Status::invalid(fmt::format("no axis is called {:?}; there are pp, dp, cp, tp", name)));
}

std::uint32_t hdp_rank_of(const Topology& topology, nb::handle argument) {
  const std::int64_t rank = whole_number("rank", argument);
  if (rank < 0 || rank >= topology.world_size()) {
    throw StatusError(Status::invalid(fmt::format("rank {} is none of {} ranks, which count from 0",
                                                  rank, topology.world_size())));
  }
  return topology.hdp_rank(model::Rank(static_cast<std::uint32_t>(rank))).value;
}

}  // namespace

void bind_topology(nb::module_& module) {
  nb::class_<Topology>(module, "Topology",
                       "The ranks of a job as a box with named axes. Immutable.")
      .def(
          "__init__",
          [](Topology* self, std::string_view axes) {
            new (self) Topology(or_raise(Topology::parse(axes)));
          },
          nb::arg("axes"),
          "From axes like \"pp=1 dp=8 cp=1 tp=1\", outermost first: the last one's neighbours have "
          "neighbouring ranks. Axes that are not named have extent 1.")
      .def_prop_ro("world_size", &Topology::world_size, "The product of all extents.")
      .def_prop_ro("hdp_size", &Topology::hdp_size,
                   "The product of the dp and cp extents: among so many the samples of a step are "
                   "divided.")
      .def("extent", extent_of, nb::arg("axis"), "Of \"pp\", \"dp\", \"cp\" or \"tp\".")
      .def("hdp_rank", hdp_rank_of, nb::arg("rank"),
           nb::sig("def hdp_rank(self, rank: int) -> int"),
           "Whose part of a step this rank runs: ranks that differ along pp and tp alone run the "
           "same.")
      .def("__str__", [](const Topology& self) { return model::to_string(self); })
      .def("__repr__",
           [](const Topology& self) {
             return fmt::format("Topology({:?})", model::to_string(self));
           })
      .def(
          "__reduce__",
          [](const nb::handle self) {
            return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self)));
          },
          nb::sig("def __reduce__(self) -> tuple[type[Topology], tuple[str]]"),
          "For pickle: by its text.")
      .def("__hash__",
           [](const Topology& self) { return xxh3_64(as_bytes(model::to_string(self))); })
      .def(nb::self == nb::self);
}

}  // namespace batchloom::python
