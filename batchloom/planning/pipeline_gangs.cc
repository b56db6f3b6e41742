// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_gangs.h"

#include <algorithm>

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

PipelineGroup with(PipelineGroup group, std::uint64_t time_ns) {
  group.sum_ns += time_ns;
  group.longest_ns = std::max(group.longest_ns, time_ns);
  return group;
}

class PipelineGangPlacer {
 public:
  PipelineGangPlacer(const HdpProblem& problem, std::uint32_t ranks, std::uint32_t stages,
                     std::uint64_t target_ns)
      : problem_(problem), ranks_(ranks), stages_(stages), target_ns_(target_ns) {
    groups_.push_back({.width = ranks});
  }

  std::optional<std::vector<PipelineGang>> run() {
    for (std::uint32_t i = 0; i < problem_.longs.size(); ++i) {
      if (!place(i)) return std::nullopt;
    }
    return std::move(gangs_);
  }

 private:
  struct Fit {
    std::size_t group = 0;
    DegreeChoice choice;
    std::uint64_t end_ns = 0;
  };

  /// Nullptr where the group has no room.
  const DegreeChoice* choose(const LongSample& sample, const PipelineGroup& group) const {
    const auto choices = problem_.choices_of(sample);
    if (choices.front().degree > group.width) return nullptr;
    const auto above = std::ranges::upper_bound(choices, group.width, {}, &DegreeChoice::degree);
    const DegreeChoice* most = &*std::prev(above);
    const DegreeChoice* choice = most;
    if (group.longest_ns > 0) {
      const DegreeChoice* least = problem_.within(sample, group.longest_ns);
      if (least != nullptr && least->degree < most->degree) choice = least;
      if (with(group, choice->time_ns).end_ns(stages_) > target_ns_) choice = most;
    }
    return with(group, choice->time_ns).end_ns(stages_) > target_ns_ ? nullptr : choice;
  }

  std::optional<Fit> find(const LongSample& sample) const {
    std::optional<Fit> best;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const DegreeChoice* choice = choose(sample, groups_[i]);
      if (choice == nullptr) continue;
      const std::uint64_t end_ns = groups_[i].end_ns(stages_);
      if (!best || end_ns > best->end_ns) best = Fit{i, *choice, end_ns};
    }
    return best;
  }

  /// Where no group is wide enough, all ranks wait for the last of them and are one group.
  void join_for(const LongSample& sample) {
    const std::uint32_t least = problem_.choices_of(sample).front().degree;
    PipelineGroup all{.width = ranks_};
    for (const PipelineGroup& group : groups_) {
      if (group.width >= least) return;
      all.sum_ns = std::max(all.sum_ns, group.sum_ns);
      all.longest_ns = std::max(all.longest_ns, group.longest_ns);
    }
    groups_.assign(1, all);
  }

  bool place(std::uint32_t index) {
    const LongSample& sample = problem_.longs[index];
    join_for(sample);
    const auto fit = find(sample);
    if (!fit) return false;
    PipelineGroup& group = groups_[fit->group];
    PipelineGroup rest = group;
    gangs_.push_back({index, group.first, fit->choice.degree, fit->choice.time_ns});
    group = with(group, fit->choice.time_ns);
    group.width = fit->choice.degree;
    rest.first += fit->choice.degree;
    rest.width -= fit->choice.degree;
    if (rest.width > 0) groups_.push_back(rest);
    return true;
  }

  const HdpProblem& problem_;
  const std::uint32_t ranks_;
  const std::uint64_t stages_;
  const std::uint64_t target_ns_;
  std::vector<PipelineGroup> groups_;
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
