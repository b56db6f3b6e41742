// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"
#include "python/bindings/blocking.h"
#include "python/bindings/errors.h"
#include "python/bindings/module.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;
using model::Piece;
using model::StepPlan;

StepPlan plan(const std::vector<std::uint32_t>& lengths, const model::Topology& topology,
              const std::string& strategy, std::uint32_t capacity, const std::string& cost_model,
              std::uint32_t min_share, bool offload) {
  const WaitingCall call;
  const nb::gil_scoped_release released;
  planning::StrategyInputs inputs;
  inputs.costs = or_raise(planning::builtin_cost_model(cost_model));
  inputs.topology = topology;
  inputs.capacity_tokens = capacity;
  inputs.min_share_tokens = min_share;
  inputs.offload = offload;
  return or_raise(planning::plan_with(strategy, inputs, planning::samples_of(lengths)));
}

/// By rank, then by micro-batch.
std::vector<std::vector<std::vector<Piece>>> ranks_of(const StepPlan& self) {
  std::vector<std::vector<std::vector<Piece>>> ranks(self.ranks.size());
  for (model::HdpRank rank; rank.value < self.ranks.size(); ++rank) {
    for (const model::MicroBatch& micro_batch : self.micro_batches_of(rank)) {
      const auto pieces = self.pieces_of(micro_batch);
      ranks[rank.value].emplace_back(pieces.begin(), pieces.end());
    }
  }
  return ranks;
}

void bind_planned_piece(nb::module_& module) {
  nb::class_<Piece>(module, "Piece", "Tokens [lo, hi) of a sample.")
      .def_prop_ro(
          "sample", [](const Piece& self) { return self.sample.value; },
          "Its place among the lengths.")
      .def_ro("lo", &Piece::lo)
      .def_ro("hi", &Piece::hi)
      .def("__len__", &Piece::tokens)
      .def(nb::self == nb::self)
      .def("__repr__", [](const Piece& self) {
        return fmt::format("Piece(sample={}, lo={}, hi={})", self.sample.value, self.lo, self.hi);
      });
}

}  // namespace

void bind_plan(nb::module_& module) {
  bind_planned_piece(module);
  nb::class_<StepPlan>(module, "Plan", "Who computes what of one optimizer step.")
      .def_prop_ro("ranks", ranks_of,
                   "By HDP rank its micro-batches, in the order in which it runs them, each a list "
                   "of pieces. An empty one is a filler.")
      .def_ro("strategy", &StepPlan::strategy)
      .def_ro("topology", &StepPlan::topology)
      .def_ro("bound_ns", &StepPlan::lower_bound_ns, "No plan of this step can be faster; 0: none.")
      .def_ro("makespan_ns", &StepPlan::makespan_ns, "Predicted time of the slowest rank.");
  module.def("plan", plan, nb::arg("lengths"), nb::arg("topology"), nb::kw_only(),
             nb::arg("strategy"), nb::arg("capacity"), nb::arg("cost_model"), nb::arg("min_share"),
             nb::arg("offload"));
  module.def(
      "strategies",
      [] {
        const std::vector<std::string_view> names = planning::strategy_names();
        return std::vector<std::string>(names.begin(), names.end());
      },
      "What plan() knows as strategy.");
}

}  // namespace batchloom::python
