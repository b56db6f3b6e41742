// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/step_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/permutation.h"
#include "batchloom/planning/planner.h"
#include "batchloom/simulator/length_distributions.h"

namespace batchloom::simulator {
namespace {

/// Real lengths, pass after pass.
class ShuffledLengths {
 public:
  ShuffledLengths(std::vector<std::uint32_t> lengths, std::uint64_t seed)
      : lengths_(std::move(lengths)), seed_(seed), order_(order_of(0)) {}

  std::uint32_t next() {
    if (place_ == lengths_.size()) {
      place_ = 0;
      order_ = order_of(++pass_);
    }
    return lengths_[order_.at(place_++).value];
  }

 private:
  planning::Permutation order_of(std::uint32_t pass) const {
    return planning::Permutation({.seed = seed_, .source = {}, .epoch = model::Epoch(pass)},
                                 lengths_.size());
  }

  std::vector<std::uint32_t> lengths_;
  std::uint64_t seed_;
  std::uint32_t pass_ = 0;
  std::uint64_t place_ = 0;
  planning::Permutation order_;
};

std::vector<std::uint32_t> take_step(ShuffledLengths& from, std::uint64_t tokens) {
  std::vector<std::uint32_t> step;
  for (std::uint64_t left = tokens; left > 0; left -= step.back()) {
    step.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(from.next(), left)));
  }
  return step;
}

}  // namespace

Result<LengthsByStep> lengths_of_steps(std::string_view distribution, const StepLengths& wanted) {
  LengthsByStep steps;
  for (std::uint64_t step = 0; step < wanted.steps; ++step) {
    BL_ASSIGN_OR_RETURN(auto lengths, draw_lengths({.distribution = distribution,
                                                    .context_tokens = wanted.context_tokens,
                                                    .total_tokens = wanted.step_tokens,
                                                    .seed = wanted.seed + step}));
    steps.push_back(std::move(lengths));
  }
  return steps;
}

Result<LengthsByStep> lengths_of_steps(std::vector<std::uint32_t> lengths,
                                       const StepLengths& wanted) {
  if (wanted.step_tokens > kTotalTokensMax) {
    return Status::invalid(fmt::format("a step of {} tokens; at most {} can be drawn",
                                       wanted.step_tokens, kTotalTokensMax));
  }
  const std::size_t all = lengths.size();
  std::erase_if(lengths, [&](std::uint32_t length) { return length > wanted.context_tokens; });
  if (lengths.empty()) {
    return Status::invalid(fmt::format("none of the {} samples fits into a context of {} tokens",
                                       all, wanted.context_tokens));
  }
  ShuffledLengths shuffled(std::move(lengths), wanted.seed);
  LengthsByStep steps;
  for (std::uint64_t step = 0; step < wanted.steps; ++step) {
    steps.push_back(take_step(shuffled, wanted.step_tokens));
  }
  return steps;
}

Result<LengthsByStep> lengths_of_steps(const planning::GraphSpec& graph,
                                       planning::Metadata& metadata, std::uint64_t steps) {
  LengthsByStep drawn;
  BL_ASSIGN_OR_RETURN(planning::PlannerState state, planning::first_state(graph, metadata));
  while (drawn.size() < steps) {
    BL_ASSIGN_OR_RETURN(auto step, planning::draw_step(graph, state, metadata));
    if (!step) break;
    std::vector<std::uint32_t>& lengths = drawn.emplace_back();
    for (const model::SampleMeta& member : step->members) lengths.push_back(member.tokens);
    state = std::move(step->next);
  }
  if (!drawn.empty()) return drawn;
  return Status::invalid("the sources end before the first step; exhausted = \"repeat\" goes on");
}

}  // namespace batchloom::simulator
