// SPDX-License-Identifier: Apache-2.0
// What holds for every strategy, whatever the lengths and the cluster. Each property is a test of
// each strategy, and goes through every generator of lengths (length_testing.h).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "batchloom/base/real_runtime.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_codec.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/rank_events.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategy_testing.h"

namespace batchloom::planning {
namespace {

using model::StepPlan;
using StepEvents = std::vector<model::RankEvents>;  // By pipeline stage.

class EveryStrategy : public testing::TestWithParam<Strategy> {};
INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(tested_strategies()),
                         name_of_strategy);

/// The samples that were given, and the pieces of each of them tile it: each token is held once.
void check_each_token_once(const StepPlan& plan, const Lengths& lengths) {
  RC_ASSERT(plan.samples == samples_of(lengths));
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> held(lengths.size());
  for (const model::Piece& piece : plan.pieces) {
    held.at(piece.sample.value).emplace_back(piece.lo, piece.hi);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::ranges::sort(held[i]);
    std::uint32_t end = 0;
    for (const auto& [lo, hi] : held[i]) {
      RC_ASSERT(lo == end);
      RC_ASSERT(hi > lo);
      end = hi;
    }
    RC_ASSERT(end == lengths[i]);
  }
}

/// No micro-batch is larger than the capacity, or with activations on the host, than what of them
/// stays on the device.
void check_capacity_is_kept(const StepPlan& plan, const Strategy& strategy,
                            const StrategyInputs& inputs) {
  const std::uint64_t layers = inputs.costs.layers;
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint64_t tokens = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    const std::uint64_t copied = plan.tasks[micro_batch.task.value].offload.value;
    if (copied == 0) {
      RC_ASSERT(tokens <= inputs.capacity_tokens);
      continue;
    }
    RC_ASSERT(strategy.takes.offload && inputs.offload);
    const std::uint64_t all = model::kOffloadAll.value;
    const std::uint64_t kept = 2 * all + (layers - 2) * (all - copied);  // Layers x all.
    RC_ASSERT(copied <= all);
    RC_ASSERT(kept * tokens <= layers * all * inputs.capacity_tokens);
  }
}

/// The proof that a plan is given before it is released.
void check_is_proven(const StepPlan& plan, const Strategy& strategy, const StrategyInputs& inputs,
                     const StepEvents& events) {
  const model::Capacity capacity{.tokens = inputs.capacity_tokens, .layers = inputs.costs.layers};
  const Status checked = model::check_plan(
      plan, {.capacity = capacity, .equal_micro_batch_counts = strategy.spread == Spread::kDp});
  RC_ASSERT(checked.to_string() == "ok");
  RC_ASSERT(model::check_stage_events(plan, events).to_string() == "ok");
  RC_ASSERT(plan.digest == model::plan_digest(plan));
  RC_ASSERT(strategy.name.starts_with(plan.strategy));
}

/// What comes after what: by number, events are (stage, task, phase).
class EventGraph {
 public:
  EventGraph(const StepPlan& plan, const StepEvents& stages)
      : tasks_(plan.tasks.size()), behind_(stages.size() * tasks_ * 2) {
    for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
      for (model::HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
        const auto list = stages[stage].of(rank);
        for (std::size_t i = 1; i < list.size(); ++i) {
          follows(number(stage, list[i - 1].event), number(stage, list[i].event));
        }
      }
      for (model::TaskIndex task; task.value < tasks_; ++task) {
        const model::Event forward{task, model::Phase::kForward};
        const model::Event backward{task, model::Phase::kBackward};
        if (stage + 1 == stages.size()) {
          follows(number(stage, forward), number(stage, backward));
        } else {
          follows(number(stage, forward), number(stage + 1, forward));
          follows(number(stage + 1, backward), number(stage, backward));
        }
      }
    }
  }

  /// Whether all events end where each waits for those that it follows.
  bool is_acyclic() const {
    std::vector<std::uint32_t> waits_for(behind_.size(), 0);
    for (const auto& behind : behind_) {
      for (const std::size_t event : behind) ++waits_for[event];
    }
    std::deque<std::size_t> ready;
    for (std::size_t event = 0; event < behind_.size(); ++event) {
      if (waits_for[event] == 0) ready.push_back(event);
    }
    std::size_t over = 0;
    for (; !ready.empty(); ready.pop_front(), ++over) {
      for (const std::size_t event : behind_[ready.front()]) {
        if (--waits_for[event] == 0) ready.push_back(event);
      }
    }
    return over == behind_.size();
  }

 private:
  std::size_t number(std::size_t stage, const model::Event& event) const {
    return (stage * tasks_ + event.task.value) * 2 + (event.phase == model::Phase::kBackward);
  }
  void follows(std::size_t before, std::size_t after) { behind_[before].push_back(after); }

  std::size_t tasks_;
  std::vector<std::vector<std::size_t>> behind_;
};

/// Of a stage of a rank, two events in each other's place.
void check_swap_is_refused(const StepPlan& plan, StepEvents events) {
  model::RankEvents& stage = events[*rc::gen::inRange<std::size_t>(0, events.size())];
  const model::IndexRange list = *rc::gen::elementOf(stage.ranks);
  if (list.size() < 2) return;
  const auto i = *rc::gen::inRange(list.begin, list.end - 1);
  const auto j = *rc::gen::inRange(i + 1, list.end);
  std::swap(stage.events[i], stage.events[j]);
  RC_ASSERT(model::check_stage_events(plan, events).is(ErrorKind::kInvalid));
}

TEST_P(EveryStrategy, PlansSoundSteps) {
  const Strategy& strategy = GetParam();
  holds_for_all_lengths(strategy, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const StepPlan plan = planned(strategy, inputs, lengths);
    const StepEvents events = model::stage_events_of(plan);
    check_each_token_once(plan, lengths);
    check_capacity_is_kept(plan, strategy, inputs);
    check_is_proven(plan, strategy, inputs, events);
    RC_ASSERT(EventGraph(plan, events).is_acyclic());
    check_swap_is_refused(plan, events);
  });
}

TEST_P(EveryStrategy, PlansTheSameOnAnyThreadsInAnyOrder) {
  const Strategy& strategy = GetParam();
  const std::unique_ptr<Runtime> runtime = make_real_runtime();
  holds_for_all_lengths(strategy, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const auto samples = samples_of(lengths);
    const Bytes alone = model::encode_plan(planned(strategy, inputs, samples));
    std::vector<Bytes> together(*rc::gen::inRange<std::size_t>(1, 4));
    std::vector<std::unique_ptr<Task>> threads;
    for (std::size_t i = 0; i < together.size(); ++i) {
      const auto order = shuffled(samples, *rc::gen::arbitrary<std::uint64_t>());
      threads.push_back(runtime->spawn("planner", [&, order, i](const std::stop_token&) {
        const Result<StepPlan> plan = strategy.plan(inputs, order);
        if (plan.is_ok()) together[i] = model::encode_plan(*plan);
      }));
    }
    for (const auto& thread : threads) thread->join();
    for (const Bytes& bytes : together) RC_ASSERT(bytes == alone);
  });
}

TEST_P(EveryStrategy, NamesTheSampleThatFitsNowhere) {
  const Strategy& strategy = GetParam();
  holds_for_all_lengths(strategy, [&](StrategyInputs inputs, Lengths lengths) {
    // How much baselines gain by offload is up to the costs.
    if (strategy.kind == StrategyKind::kBaseline) inputs.offload = false;
    const auto place = *rc::gen::inRange<std::size_t>(0, lengths.size() + 1);
    const std::uint32_t room = room_of(strategy, inputs);
    for (std::uint32_t& length : lengths) length = std::min(length, room);
    const auto at = lengths.insert(lengths.begin() + static_cast<std::ptrdiff_t>(place), room);
    planned(strategy, inputs, lengths);
    *at += *rc::gen::inRange<std::uint32_t>(1, 1000);
    const Status refused = strategy.plan(inputs, samples_of(lengths)).status();
    RC_ASSERT(refused.is(ErrorKind::kInvalid));
    RC_ASSERT(refused.error_case() == ErrorCase::kDoesNotFit);
    const std::string name = fmt::format("sample 0:0:{}:0 of {} tokens", place, *at);
    RC_ASSERT(refused.message().find(name) != std::string_view::npos);
  });
}

}  // namespace
}  // namespace batchloom::planning
