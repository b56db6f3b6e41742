// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_gangs.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace batchloom::planning {
namespace {

/// Ranks [first, first + width).
struct PipelineGroup {
  std::uint64_t sum_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint32_t first = 0;
  std::uint32_t width = 0;

  std::uint64_t end_ns(std::uint64_t stages) const { return sum_ns + (stages - 1) * longest_ns; }
};

class PipelineGangPlacer {
 public:
  PipelineGangPlacer(const HdpProblem& problem, std::uint32_t ranks, std::uint32_t stages,
                     std::uint64_t target_ns)
      : problem_(problem), ranks_(ranks), stages_(stages), target_ns_(target_ns) {
    push({.width = ranks});
  }

  std::optional<std::vector<PipelineGang>> run() {
    for (std::uint32_t i = 0; i < problem_.longs.size(); ++i) {
      if (!place(i)) return std::nullopt;
    }
    return std::move(gangs_);
  }

 private:
  struct Key {
    std::uint64_t end_ns;
    PipelineGroup group;
    friend bool operator>(const Key& a, const Key& b) {
      return std::tie(a.end_ns, a.group.first) > std::tie(b.end_ns, b.group.first);
    }
  };

  void push(const PipelineGroup& group) { lowest_.push({group.end_ns(stages_), group}); }

  static PipelineGroup with(PipelineGroup group, std::uint64_t time_ns) {
    group.sum_ns += time_ns;
    group.longest_ns = std::max(group.longest_ns, time_ns);
    return group;
  }

  /// Ranks that are too few for this sample wait for shorter ones.
  bool find_group(std::uint32_t least) {
    for (auto it = aside_.lower_bound(least); it != aside_.end(); it = aside_.erase(it)) {
      push(it->second);
    }
    while (!lowest_.empty() && lowest_.top().group.width < least) {
      const PipelineGroup& group = lowest_.top().group;
      aside_.emplace(group.width, group);
      lowest_.pop();
    }
    return !lowest_.empty();
  }

  /// All ranks wait for the last of them. Precondition: all groups are aside.
  void join_all() {
    PipelineGroup all{.width = ranks_};
    for (const auto& [width, group] : aside_) {
      all.sum_ns = std::max(all.sum_ns, group.sum_ns);
      all.longest_ns = std::max(all.longest_ns, group.longest_ns);
    }
    aside_.clear();
    push(all);
  }

  /// The fewest ranks with which the group ends in time; nullptr where too many are needed.
  const DegreeChoice* choose(const LongSample& sample, const PipelineGroup& group) const {
    const auto choices = problem_.choices_of(sample);
    const auto found = std::ranges::partition_point(choices, [&](const DegreeChoice& choice) {
      return with(group, choice.time_ns).end_ns(stages_) > target_ns_;
    });
    if (found == choices.end() || found->degree > group.width) return nullptr;
    return &*found;
  }

  bool place(std::uint32_t index) {
    const LongSample& sample = problem_.longs[index];
    const std::uint32_t least = problem_.choices_of(sample).front().degree;
    if (!find_group(least)) join_all();
    PipelineGroup group = lowest_.top().group;
    const DegreeChoice* choice = choose(sample, group);
    if (choice == nullptr) return false;
    const std::uint32_t least_next =
        index + 1 < problem_.longs.size()
            ? problem_.choices_of(problem_.longs[index + 1]).front().degree
            : 1;
    if (group.width - choice->degree < least_next) choice = whole(sample, group, choice);
    lowest_.pop();
    PipelineGroup taken = with(group, choice->time_ns);
    taken.width = choice->degree;
    gangs_.push_back({index, group.first, choice->degree, choice->time_ns});
    push(taken);
    group.first += choice->degree;
    group.width -= choice->degree;
    if (group.width > 0) push(group);
    return true;
  }

  /// All of the group's ranks, where that is one of the sample's choices: what would be left over is
  /// too narrow for the next sample.
  const DegreeChoice* whole(const LongSample& sample, const PipelineGroup& group,
                            const DegreeChoice* otherwise) const {
    const auto choices = problem_.choices_of(sample);
    const auto found =
        std::ranges::lower_bound(choices, group.width, {}, &DegreeChoice::degree);
    return found != choices.end() && found->degree == group.width ? &*found : otherwise;
  }

  const HdpProblem& problem_;
  const std::uint32_t ranks_;
  const std::uint64_t stages_;
  const std::uint64_t target_ns_;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> lowest_;
  std::multimap<std::uint32_t, PipelineGroup> aside_;  // By width.
  std::vector<PipelineGang> gangs_;
};

}  // namespace

std::optional<std::vector<PipelineGang>> place_pipeline_gangs(const HdpProblem& problem,
                                                              std::uint32_t ranks,
                                                              std::uint32_t stages,
                                                              std::uint64_t target_ns) {
  return PipelineGangPlacer(problem, ranks, stages, target_ns).run();
}

}  // namespace batchloom::planning
