// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::planning {
namespace {

/// What a stage of one rank does next.
struct StageCursor {
  std::uint32_t forward = 0;   ///< Micro-batches gone forward.
  std::uint32_t backward = 0;  ///< And backward.
  std::uint64_t free_ns = 0;
};

class PipelineWalk {
 public:
  PipelineWalk(std::span<const PipelineTask> tasks, std::uint32_t ranks, std::uint32_t stages)
      : tasks_(tasks), stages_(stages), tasks_of_(ranks), cursors_(std::size_t{ranks} * stages) {
    for (std::uint32_t task = 0; task < tasks.size(); ++task) {
      for (const std::uint32_t rank : tasks[task].members) tasks_of_[rank].push_back(task);
    }
    ready_.assign(tasks.size() * stages * 2, 0);
    end_ns_.assign(tasks.size() * stages * 2, kPending);
  }

  Result<PipelineTime> run() {
    BL_RETURN_IF_ERROR(check_slots());
    for (std::uint32_t rank = 0; rank < tasks_of_.size(); ++rank) {
      for (std::uint32_t stage = 0; stage < stages_; ++stage) offer(rank, stage);
    }
    while (!queue_.empty()) {
      const Event event = queue_.back();
      queue_.pop_back();
      finish(event);
    }
    BL_CHECK(done_ == end_ns_.size(), "one order of slots never waits for itself");
    return summary();
  }

 private:
  static constexpr std::uint64_t kPending = UINT64_MAX;

  struct Event {
    std::uint32_t task = 0;
    std::uint32_t stage = 0;
    bool backward = false;
  };

  Status check_slots() const {
    for (std::size_t rank = 0; rank < tasks_of_.size(); ++rank) {
      const auto& mine = tasks_of_[rank];
      for (std::size_t i = 1; i < mine.size(); ++i) {
        if (tasks_[mine[i - 1]].slot < tasks_[mine[i]].slot) continue;
        return Status::invalid(fmt::format("rank {} runs task {} in slot {} and task {} in slot {}",
                                           rank, mine[i - 1], tasks_[mine[i - 1]].slot, mine[i],
                                           tasks_[mine[i]].slot));
      }
    }
    return Status::ok();
  }

  std::size_t place(const Event& event) const {
    return (std::size_t{event.task} * stages_ + event.stage) * 2 + (event.backward ? 1 : 0);
  }
  StageCursor& cursor(std::uint32_t rank, std::uint32_t stage) {
    return cursors_[std::size_t{rank} * stages_ + stage];
  }

  /// The event that comes next on a stage by 1F1B; nullopt where it is through.
  std::optional<Event> next_of(std::uint32_t rank, std::uint32_t stage) {
    const StageCursor& at = cursor(rank, stage);
    const auto& mine = tasks_of_[rank];
    if (at.backward == mine.size()) return std::nullopt;
    const std::uint64_t in_flight = stages_ - stage;  // Slots, at most.
    const bool forward = at.forward < mine.size() &&
                         tasks_[mine[at.forward]].slot < tasks_[mine[at.backward]].slot + in_flight;
    return forward ? Event{mine[at.forward], stage, false} : Event{mine[at.backward], stage, true};
  }

  /// Counts a member that has come to its next event; queues the event once all have.
  void offer(std::uint32_t rank, std::uint32_t stage) {
    const auto event = next_of(rank, stage);
    if (!event) return;
    if (++ready_[place(*event)] == needed(*event)) queue_.push_back(*event);
  }

  /// Members, and the event on the neighbouring stage that has to be over.
  std::uint32_t needed(const Event& event) const {
    const auto members = static_cast<std::uint32_t>(tasks_[event.task].members.size());
    return members + (before(event) ? 1 : 0);
  }
  std::optional<Event> before(const Event& event) const {
    if (!event.backward) {
      if (event.stage == 0) return std::nullopt;
      return Event{event.task, event.stage - 1, false};
    }
    if (event.stage + 1 == stages_) return std::nullopt;  // Its own forward came before.
    return Event{event.task, event.stage + 1, true};
  }
  std::optional<Event> after(const Event& event) const {
    if (!event.backward) {
      if (event.stage + 1 == stages_) return std::nullopt;
      return Event{event.task, event.stage + 1, false};
    }
    if (event.stage == 0) return std::nullopt;
    return Event{event.task, event.stage - 1, true};
  }

  void finish(const Event& event) {
    const PipelineTask& task = tasks_[event.task];
    std::uint64_t start_ns = 0;
    if (const auto previous = before(event)) start_ns = end_ns_[place(*previous)];
    for (const std::uint32_t rank : task.members) {
      start_ns = std::max(start_ns, cursor(rank, event.stage).free_ns);
    }
    const std::uint64_t end_ns = start_ns + (event.backward ? task.backward_ns : task.forward_ns);
    end_ns_[place(event)] = end_ns;
    time_.makespan_ns = std::max(time_.makespan_ns, end_ns);
    time_.events.push_back({event.task, event.stage, event.backward, start_ns, end_ns});
    ++done_;
    if (const auto next = after(event)) {
      if (++ready_[place(*next)] == needed(*next)) queue_.push_back(*next);
    }
    for (const std::uint32_t rank : task.members) {
      StageCursor& at = cursor(rank, event.stage);
      at.free_ns = end_ns;
      ++(event.backward ? at.backward : at.forward);
      offer(rank, event.stage);
    }
  }

  PipelineTime summary() {
    for (const auto& mine : tasks_of_) {
      std::uint64_t busy_ns = 0;
      for (const std::uint32_t task : mine) {
        busy_ns += tasks_[task].forward_ns + tasks_[task].backward_ns;
      }
      time_.busy_ns.push_back(busy_ns);
    }
    return std::move(time_);
  }

  const std::span<const PipelineTask> tasks_;
  const std::uint32_t stages_;
  std::vector<std::vector<std::uint32_t>> tasks_of_;  // By rank.
  std::vector<StageCursor> cursors_;                  // By rank and stage.
  std::vector<std::uint32_t> ready_;                  // By event: how much of needed() there is.
  std::vector<std::uint64_t> end_ns_;                 // By event.
  std::vector<Event> queue_;
  std::size_t done_ = 0;
  PipelineTime time_;
};

}  // namespace

Result<PipelineTime> time_of_pipeline(std::span<const PipelineTask> tasks, std::uint32_t ranks,
                                      std::uint32_t stages) {
  return PipelineWalk(tasks, ranks, stages).run();
}

}  // namespace batchloom::planning
