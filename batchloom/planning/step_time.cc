// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/step_time.h"

#include <algorithm>
#include <span>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/rank_events.h"
#include "batchloom/planning/pipeline_time.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::StepPlan;

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kNsInOneSecond = 1'000'000'000;

/// Rounded up; a time that 64 bits do not hold becomes the longest that they do. No bandwidth:
/// nothing is known of it, and it takes no time.
std::uint64_t moving_ns(Wide bytes, std::uint64_t bandwidth_bytes_per_s) {
  if (bandwidth_bytes_per_s == 0) return 0;
  const Wide time = (bytes * kNsInOneSecond + bandwidth_bytes_per_s - 1) / bandwidth_bytes_per_s;
  return time > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(time);
}

std::uint64_t share_of_time(std::uint64_t time_ns, std::uint64_t by) {
  return (time_ns + by - 1) / by;
}

/// The links between HDP ranks.
class Links {
 public:
  explicit Links(const model::Topology& topology) : levels_(topology.levels()) {
    for (HdpRank rank; rank.value < topology.hdp_size(); ++rank) {
      worlds_.push_back(topology.rank(topology.coordinates(rank)).value);
    }
  }

  /// At least 1.
  std::size_t count() const { return std::max<std::size_t>(levels_.size(), 1); }

  /// Index of the innermost level with both in one group; of the last where there is none.
  std::size_t joining(HdpRank a, HdpRank b) const {
    std::size_t level = 0;
    while (level + 1 < levels_.size() && worlds_[a.value] / levels_[level].ranks_per_group !=
                                             worlds_[b.value] / levels_[level].ranks_per_group) {
      ++level;
    }
    return level;
  }

  /// Of a way through the links up to this level.
  std::uint64_t hop_ns(std::size_t level, Wide bytes) const {
    if (levels_.empty()) return 0;
    std::uint64_t slowest = UINT64_MAX;
    std::uint64_t latency_ns = 0;
    for (std::size_t i = 0; i <= level; ++i) {
      slowest = std::min(slowest, levels_[i].bandwidth_bytes_per_s);
      latency_ns = std::max(latency_ns, levels_[i].latency_ns);
    }
    return moving_ns(bytes, slowest) + latency_ns;
  }

 private:
  const std::vector<model::Level>& levels_;
  std::vector<std::uint32_t> worlds_;  // By HDP rank, the first rank of its slice.
};

/// What the members of a task hold, and the attention of one layer on each of them.
struct TaskLoad {
  std::uint64_t attention_ns = 0;
  std::uint64_t attention_forward_ns = 0;
  std::uint64_t largest_share_tokens = 0;
  std::uint64_t tokens = 0;
};

class StepClock {
 public:
  StepClock(const StepPlan& plan, const CostModel& costs, const StepTimeOptions& options)
      : plan_(plan),
        costs_(costs),
        options_(options),
        links_(plan.topology),
        stages_(plan.topology.extent(model::Axis::kPp)),
        stage_layers_(share_of_time(costs.layers, stages_)) {}

  Result<StepTime> run() {
    time_.bytes_by_level.assign(links_.count(), 0);
    load_tasks();
    time_.tasks.resize(plan_.tasks.size());
    for (std::uint32_t task = 0; task < plan_.tasks.size(); ++task) time_task(task);
    if (stages_ == 1) {
      follow_events();
    } else {
      BL_RETURN_IF_ERROR(follow_pipeline());
    }
    for (const EventTime& event : time_.events) note_event(event);
    sum_ranks();
    return std::move(time_);
  }

 private:
  /// Tokens by member, and attention by the samples that the pieces name.
  void load_tasks() {
    loads_.resize(plan_.tasks.size());
    std::vector<std::uint32_t> task_of(plan_.samples.size(), UINT32_MAX);
    for (const model::MicroBatch& micro_batch : plan_.micro_batches) {
      TaskLoad& load = loads_[micro_batch.task.value];
      std::uint64_t tokens = 0;
      for (const model::Piece& piece : plan_.pieces_of(micro_batch)) {
        tokens += piece.tokens();
        task_of[piece.sample.value] = micro_batch.task.value;
      }
      load.tokens += tokens;
      load.largest_share_tokens = std::max(load.largest_share_tokens, tokens);
    }
    for (std::size_t i = 0; i < task_of.size(); ++i) {
      if (task_of[i] != UINT32_MAX) add_attention(plan_.samples[i].tokens, task_of[i]);
    }
  }

  void add_attention(std::uint32_t tokens, std::uint32_t task) {
    const std::uint64_t degree = plan_.tasks[task].members.size();
    const std::uint64_t both = share_of_time(costs_.attention.time_ns(tokens), degree);
    const std::uint64_t forward = share_of_time(costs_.attention_forward.time_ns(tokens), degree);
    loads_[task].attention_ns += both;
    loads_[task].attention_forward_ns += std::min(both, forward);
  }

  void time_task(std::uint32_t index) {
    const model::Task& task = plan_.tasks[index];
    const TaskLoad& load = loads_[index];
    TaskTime& time = time_.tasks[index];
    const std::uint64_t tokens = std::max<std::uint64_t>(load.largest_share_tokens, 1);
    const std::uint64_t linear = costs_.linear.time_ns(tokens);
    const std::uint64_t linear_forward = std::min(linear, costs_.linear_forward.time_ns(tokens));
    const std::uint64_t attention_backward = load.attention_ns - load.attention_forward_ns;
    const std::size_t slowest = add_bytes(index);
    const Wide hop_bytes = Wide{load.largest_share_tokens} * costs_.kv_bytes_per_token;
    const std::uint64_t degree = task.members.size();
    time.forward.compute_ns = load.attention_forward_ns + linear_forward;
    time.forward.ring_ns = ring_ns(load.attention_forward_ns, degree, slowest, hop_bytes);
    time.backward.compute_ns = attention_backward + linear - linear_forward;
    time.backward.ring_ns =
        ring_ns(attention_backward, degree, slowest, hop_bytes * options_.backward_bytes_factor);
    const std::uint64_t copy =
        moving_ns(Wide{load.largest_share_tokens} * costs_.activation_bytes_per_token *
                      task.offload.value / model::kOffloadAll.value,
                  costs_.copy_bytes_per_s);
    const std::uint64_t forward_launch = costs_.launch_ns / 2;
    finish(time.forward, copy, forward_launch);
    finish(time.backward, copy, costs_.launch_ns - forward_launch);
  }

  /// What hops take longer than the steps that they run beside.
  std::uint64_t ring_ns(std::uint64_t attention_ns, std::uint64_t degree, std::size_t level,
                        Wide hop_bytes) const {
    if (!options_.links || degree < 2 || hop_bytes == 0) return 0;
    const std::uint64_t hop_ns = links_.hop_ns(level, hop_bytes);
    const Wide hidden = Wide{attention_ns / degree} * options_.overlap_percent / 100;
    const auto hidden_ns = static_cast<std::uint64_t>(std::min<Wide>(hidden, hop_ns));
    return (degree - 1) * (hop_ns - hidden_ns);
  }

  /// From one layer to those of a stage.
  void finish(TimeParts& phase, std::uint64_t copy_ns, std::uint64_t launch_ns) const {
    const std::uint64_t before_ns = phase.compute_ns + phase.ring_ns;
    phase.copy_ns = copy_ns > before_ns ? copy_ns - before_ns : 0;
    phase.compute_ns += launch_ns;
    phase.compute_ns *= stage_layers_;
    phase.ring_ns *= stage_layers_;
    phase.copy_ns *= stage_layers_;
  }

  /// Counts what the ring sends over each of its edges: what all members hold but the one that it
  /// leads to. Returns the slowest edge's level.
  std::size_t add_bytes(std::uint32_t index) {
    const auto members = plan_.members_of(plan_.tasks[index]);
    if (members.size() < 2) return 0;
    std::size_t slowest = 0;
    const std::uint64_t factor = costs_.kv_bytes_per_token * costs_.layers *
                                 (1 + std::uint64_t{options_.backward_bytes_factor});
    for (std::size_t i = 0; i < members.size(); ++i) {
      const HdpRank next = members[(i + 1) % members.size()];
      const std::size_t level = links_.joining(members[i], next);
      slowest = std::max(slowest, level);
      time_.bytes_by_level[level] += (loads_[index].tokens - tokens_on(index, next)) * factor;
    }
    return slowest;
  }

  std::uint64_t tokens_on(std::uint32_t task, HdpRank rank) const {
    const auto micro_batches = plan_.micro_batches_of(rank);
    const auto found = std::ranges::lower_bound(micro_batches, model::TaskIndex(task), {},
                                                &model::MicroBatch::task);
    std::uint64_t tokens = 0;
    if (found == micro_batches.end()) return tokens;
    for (const model::Piece& piece : plan_.pieces_of(*found)) tokens += piece.tokens();
    return tokens;
  }

  const TimeParts& phase_of(const model::Event& event) const {
    const TaskTime& time = time_.tasks[event.task.value];
    return event.phase == model::Phase::kForward ? time.forward : time.backward;
  }

  void follow_events() {
    std::vector<std::uint64_t> free_ns(plan_.ranks.size(), 0);
    for (const model::Event& event : plan_.events) {
      const auto members = plan_.members_of(plan_.tasks[event.task.value]);
      std::uint64_t begin_ns = 0;
      for (const HdpRank rank : members) begin_ns = std::max(begin_ns, free_ns[rank.value]);
      const std::uint64_t end_ns = begin_ns + phase_of(event).total_ns();
      for (const HdpRank rank : members) free_ns[rank.value] = end_ns;
      time_.events.push_back({event.task, event.phase, 0, begin_ns, end_ns});
    }
  }

  Status follow_pipeline();

  void note_event(const EventTime& event) {
    TaskTime& task = time_.tasks[event.task.value];
    const bool first = event.phase == model::Phase::kForward && event.stage == 0;
    if (first) task.begin_ns = event.begin_ns;
    task.end_ns = std::max(task.end_ns, event.end_ns);
    time_.step_ns = std::max(time_.step_ns, event.end_ns);
  }

  void sum_ranks() {
    time_.ranks.resize(plan_.ranks.size());
    for (std::uint32_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      TimeParts& busy = time_.ranks[rank].busy;
      for (const model::MicroBatch& micro_batch : plan_.micro_batches_of(HdpRank(rank))) {
        const TaskTime& task = time_.tasks[micro_batch.task.value];
        busy.compute_ns += task.forward.compute_ns + task.backward.compute_ns;
        busy.ring_ns += task.forward.ring_ns + task.backward.ring_ns;
        busy.copy_ns += task.forward.copy_ns + task.backward.copy_ns;
      }
      time_.ranks[rank].idle_ns = time_.step_ns - std::min(time_.step_ns, busy.total_ns());
    }
  }

  const StepPlan& plan_;
  const CostModel& costs_;
  const StepTimeOptions& options_;
  const Links links_;
  const std::uint32_t stages_;
  const std::uint64_t stage_layers_;
  std::vector<TaskLoad> loads_;  // By task.
  StepTime time_;
};

Status StepClock::follow_pipeline() {
  const std::vector<std::uint32_t> slots = model::least_slots(plan_);
  std::vector<std::uint32_t> members;
  members.reserve(plan_.members.size());
  for (const HdpRank rank : plan_.members) members.push_back(rank.value);
  std::vector<PipelineTask> tasks;
  for (std::uint32_t i = 0; i < plan_.tasks.size(); ++i) {
    const model::IndexRange range = plan_.tasks[i].members;
    tasks.push_back({.members = std::span(members).subspan(range.begin, range.size()),
                     .slot = slots[i],
                     .forward_ns = time_.tasks[i].forward.total_ns(),
                     .backward_ns = time_.tasks[i].backward.total_ns()});
  }
  const auto ranks = static_cast<std::uint32_t>(plan_.ranks.size());
  BL_ASSIGN_OR_RETURN(const PipelineTime times, time_of_pipeline(tasks, ranks, stages_));
  for (const PipelineEvent& event : times.events) {
    time_.events.push_back({model::TaskIndex(event.task),
                            event.backward ? model::Phase::kBackward : model::Phase::kForward,
                            event.stage, event.begin_ns, event.end_ns});
  }
  return Status::ok();
}

}  // namespace

Result<StepTime> step_time(const StepPlan& plan, const CostModel& costs,
                           const StepTimeOptions& options) {
  BL_RETURN_IF_ERROR(model::check_plan_structure(plan));
  return StepClock(plan, costs, options).run();
}

}  // namespace batchloom::planning
