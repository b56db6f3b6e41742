// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_testing.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "batchloom/base/random.h"
#include "batchloom/model/plan_digest.h"

namespace batchloom::model {
namespace {

/// Takes tasks one by one and lays them out rank by rank.
class PlanBuilder {
 public:
  explicit PlanBuilder(Topology topology) : by_rank_(topology.hdp_size()) {
    plan_.topology = std::move(topology);
  }

  SampleIndex add_sample(const PlanSample& sample) {
    plan_.samples.push_back(sample);
    plan_.global_valid_labels += sample.valid_labels;
    return SampleIndex(static_cast<std::uint32_t>(plan_.samples.size() - 1));
  }

  /// Cuts every sample into twice as many chunks as there are members; member i of the ring gets
  /// the chunks i from the front and i from the back.
  TaskIndex add_task(const std::vector<HdpRank>& ring, const std::vector<SampleIndex>& samples) {
    const TaskIndex task(static_cast<std::uint32_t>(plan_.tasks.size()));
    const auto first = static_cast<std::uint32_t>(plan_.members.size());
    plan_.members.insert(plan_.members.end(), ring.begin(), ring.end());
    std::uint64_t cost_ns = 0;
    for (const SampleIndex sample : samples) cost_ns += plan_.samples[sample.value].tokens;
    plan_.tasks.push_back(
        {{first, static_cast<std::uint32_t>(plan_.members.size())}, OffloadRatio(0), cost_ns});
    for (std::size_t i = 0; i < ring.size(); ++i) {
      Share& share = by_rank_[ring[i].value].emplace_back(Share{task, {}});
      for (const SampleIndex sample : samples) add_chunks(share, sample, i, ring.size());
    }
    return task;
  }

  void set_offload(TaskIndex task, OffloadRatio ratio) { plan_.tasks[task.value].offload = ratio; }
  void add_event(TaskIndex task, Phase phase) { plan_.events.push_back({task, phase}); }

  StepPlan finish() {
    for (const std::vector<Share>& shares : by_rank_) {
      const auto first = static_cast<std::uint32_t>(plan_.micro_batches.size());
      for (const Share& share : shares) {
        const auto begin = static_cast<std::uint32_t>(plan_.pieces.size());
        plan_.pieces.insert(plan_.pieces.end(), share.pieces.begin(), share.pieces.end());
        plan_.micro_batches.push_back(
            {share.task, {begin, static_cast<std::uint32_t>(plan_.pieces.size())}});
      }
      plan_.ranks.push_back({first, static_cast<std::uint32_t>(plan_.micro_batches.size())});
    }
    for (const Task& task : plan_.tasks) plan_.makespan_ns += task.cost_ns;
    plan_.lower_bound_ns = plan_.makespan_ns / 2;
    plan_.bound_term = BoundTerm::kWork;
    plan_.strategy = "hdp";
    plan_.digest = plan_digest(plan_);
    return std::move(plan_);
  }

 private:
  struct Share {
    TaskIndex task;
    std::vector<Piece> pieces;
  };

  void add_chunks(Share& share, SampleIndex sample, std::size_t member, std::size_t members) {
    const std::uint32_t tokens = plan_.samples[sample.value].tokens;
    if (members == 1) {
      share.pieces.push_back({sample, 0, tokens});
      return;
    }
    const std::size_t chunks = 2 * members;
    for (const std::size_t chunk : {member, chunks - 1 - member}) {
      const auto lo = static_cast<std::uint32_t>(tokens * chunk / chunks);
      const auto hi = static_cast<std::uint32_t>(tokens * (chunk + 1) / chunks);
      if (lo < hi) share.pieces.push_back({sample, lo, hi});
    }
  }

  StepPlan plan_;
  std::vector<std::vector<Share>> by_rank_;
};

Topology topology_of(std::vector<AxisExtent> axes, std::vector<Level> levels = {}) {
  return Topology::create(std::move(axes), std::move(levels)).value();
}

std::vector<HdpRank> random_ring(Random& random, std::uint32_t ranks, std::size_t size) {
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<HdpRank> ring;
  while (ring.size() < size) {
    const auto place = static_cast<std::ptrdiff_t>(random.below(all.size()));
    ring.emplace_back(all[static_cast<std::size_t>(place)]);
    all.erase(all.begin() + place);
  }
  return ring;
}

/// Every task forward in order; backward at random places after that.
void add_random_events(PlanBuilder& builder, Random& random, std::uint32_t tasks) {
  std::vector<TaskIndex> pending;
  const auto go_backward = [&] {
    const auto place = static_cast<std::ptrdiff_t>(random.below(pending.size()));
    builder.add_event(pending[static_cast<std::size_t>(place)], Phase::kBackward);
    pending.erase(pending.begin() + place);
  };
  for (TaskIndex task; task.value < tasks; ++task) {
    builder.add_event(task, Phase::kForward);
    pending.push_back(task);
    while (!pending.empty() && random.chance(500)) go_backward();
  }
  while (!pending.empty()) go_backward();
}

}  // namespace

StepPlan small_plan() {
  PlanBuilder builder(
      topology_of({{Axis::kPp, 2}, {Axis::kDp, 2}, {Axis::kCp, 2}},
                  {{"island", 4, 400'000'000'000, 1'000}, {"leaf", 8, 50'000'000'000, 5'000}}));
  const auto id = [](std::uint32_t source, std::uint32_t epoch, std::uint64_t index,
                     std::uint32_t part) {
    return SampleId{SourceId(source), Epoch(epoch), RecordIndex(index), PartIndex(part)};
  };
  const SampleIndex ringed = builder.add_sample({id(0, 0, 7, 0), 13, 12, 0});
  const SampleIndex packed = builder.add_sample({id(0, 0, 8, 0), 4, 3, 0});
  const SampleIndex second_part = builder.add_sample({id(1, 0, 2, 1), 3, 3, 4096});
  const SampleIndex alone = builder.add_sample({id(0, 1, 0, 0), 5, 0, 0});
  builder.add_task({HdpRank(2), HdpRank(0), HdpRank(1)}, {ringed});
  builder.add_task({HdpRank(3)}, {packed, second_part});
  builder.add_task({HdpRank(0)}, {alone});
  builder.add_task({HdpRank(1), HdpRank(2), HdpRank(3)}, {});
  for (TaskIndex task; task.value < 4; ++task) {
    builder.add_event(task, Phase::kForward);
    builder.add_event(task, Phase::kBackward);
  }
  return builder.finish();
}

StepPlan random_plan(const PlanShape& shape) {
  Random random(shape.seed);
  std::vector<AxisExtent> axes = {{Axis::kDp, shape.ranks}};
  if (random.chance(500)) axes.push_back({Axis::kTp, 2});
  PlanBuilder builder(topology_of(std::move(axes)));
  std::uint32_t tasks = 0;
  for (std::uint32_t added = 0; added < shape.samples;) {
    std::vector<SampleIndex> samples;
    for (std::uint64_t n = 1 + random.below(3); n > 0 && added < shape.samples; --n, ++added) {
      const auto tokens = static_cast<std::uint32_t>(1 + random.below(40));
      const SampleId id = {.source = SourceId(static_cast<std::uint32_t>(random.below(3))),
                           .epoch = Epoch(static_cast<std::uint32_t>(random.below(2))),
                           .index = RecordIndex(added),
                           .part = PartIndex(static_cast<std::uint32_t>(random.below(2)))};
      const auto valid_labels = static_cast<std::uint32_t>(random.below(tokens + 1));
      samples.push_back(builder.add_sample({id, tokens, valid_labels, random.below(1'000)}));
    }
    const std::size_t size = random.chance(500) ? 1 : 1 + random.below(shape.ranks);
    const TaskIndex task = builder.add_task(random_ring(random, shape.ranks, size), samples);
    builder.set_offload(
        task, OffloadRatio(static_cast<std::uint32_t>(random.below(kOffloadAll.value + 1))));
    ++tasks;
    if (random.chance(200)) {
      builder.add_task({HdpRank(static_cast<std::uint32_t>(random.below(shape.ranks)))}, {});
      ++tasks;
    }
  }
  add_random_events(builder, random, tasks);
  return builder.finish();
}

rc::Gen<StepPlan> any_plan() {
  return rc::gen::map(rc::gen::tuple(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(1u, 9u),
                                     rc::gen::inRange(0u, 21u)),
                      [](const std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>& shape) {
                        const auto& [seed, ranks, samples] = shape;
                        return random_plan({.seed = seed, .ranks = ranks, .samples = samples});
                      });
}

std::vector<ChangedPlan> with_each_field_changed(const StepPlan& plan) {
  std::vector<ChangedPlan> all;
  const auto change = [&](std::string field, const std::function<void(StepPlan&)>& apply) {
    ChangedPlan changed{std::move(field), plan};
    apply(changed.plan);
    all.push_back(std::move(changed));
  };
  const auto change_topology =
      [&](std::string field,
          const std::function<void(std::vector<AxisExtent>&, std::vector<Level>&)>& apply) {
        std::vector<AxisExtent> axes = plan.topology.axes();
        std::vector<Level> levels = plan.topology.levels();
        apply(axes, levels);
        change(std::move(field), [&](StepPlan& p) { p.topology = topology_of(axes, levels); });
      };
  change_topology("axis", [](auto& axes, auto&) { axes[0].axis = Axis::kTp; });
  change_topology("extent", [](auto& axes, auto&) { axes[0].extent += 1; });
  change_topology("axes", [](auto& axes, auto&) { axes.push_back({Axis::kTp, 1}); });
  change_topology("level.name", [](auto&, auto& levels) { levels[0].name += "s"; });
  change_topology("level.ranks", [](auto&, auto& levels) { levels[1].ranks_per_group *= 2; });
  change_topology("level.bandwidth",
                  [](auto&, auto& levels) { levels[0].bandwidth_bytes_per_s += 1; });
  change_topology("level.latency", [](auto&, auto& levels) { levels[0].latency_ns += 1; });
  change_topology("levels", [](auto&, auto& levels) { levels.pop_back(); });
  change("strategy", [](StepPlan& p) { p.strategy += "x"; });
  change("samples", [](StepPlan& p) { p.samples.push_back(p.samples[0]); });
  change("sample.source", [](StepPlan& p) { ++p.samples[0].id.source; });
  change("sample.epoch", [](StepPlan& p) { ++p.samples[0].id.epoch; });
  change("sample.index", [](StepPlan& p) { ++p.samples[0].id.index; });
  change("sample.part", [](StepPlan& p) { ++p.samples[0].id.part; });
  change("sample.tokens", [](StepPlan& p) { ++p.samples[0].tokens; });
  change("sample.valid_labels", [](StepPlan& p) { --p.samples[0].valid_labels; });
  change("sample.first_position", [](StepPlan& p) { ++p.samples[0].first_position; });
  change("pieces", [](StepPlan& p) { p.pieces.pop_back(); });
  change("piece.sample", [](StepPlan& p) { ++p.pieces[0].sample; });
  change("piece.lo", [](StepPlan& p) { ++p.pieces[0].lo; });
  change("piece.hi", [](StepPlan& p) { --p.pieces[0].hi; });
  change("micro_batches", [](StepPlan& p) { p.micro_batches.pop_back(); });
  change("micro_batch.task", [](StepPlan& p) { ++p.micro_batches[0].task; });
  change("micro_batch.pieces.begin", [](StepPlan& p) { ++p.micro_batches[0].pieces.begin; });
  change("micro_batch.pieces.end", [](StepPlan& p) { ++p.micro_batches[0].pieces.end; });
  change("ranks", [](StepPlan& p) { p.ranks.pop_back(); });
  change("rank.begin", [](StepPlan& p) { ++p.ranks[0].begin; });
  change("rank.end", [](StepPlan& p) { ++p.ranks[0].end; });
  change("tasks", [](StepPlan& p) { p.tasks.pop_back(); });
  change("task.members.begin", [](StepPlan& p) { ++p.tasks[0].members.begin; });
  change("task.members.end", [](StepPlan& p) { ++p.tasks[0].members.end; });
  change("task.offload", [](StepPlan& p) { ++p.tasks[0].offload; });
  change("task.cost_ns", [](StepPlan& p) { ++p.tasks[0].cost_ns; });
  change("members", [](StepPlan& p) { p.members.pop_back(); });
  change("member", [](StepPlan& p) { ++p.members[0]; });
  change("events", [](StepPlan& p) { p.events.pop_back(); });
  change("event.task", [](StepPlan& p) { ++p.events[0].task; });
  change("event.phase", [](StepPlan& p) { p.events[0].phase = Phase::kBackward; });
  change("global_valid_labels", [](StepPlan& p) { ++p.global_valid_labels; });
  change("lower_bound_ns", [](StepPlan& p) { ++p.lower_bound_ns; });
  change("bound_term", [](StepPlan& p) { p.bound_term = BoundTerm::kLongest; });
  change("makespan_ns", [](StepPlan& p) { ++p.makespan_ns; });
  return all;
}

}  // namespace batchloom::model
