// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_sequence.h"

#include <algorithm>

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kWhole = 1 << 16;  ///< The weight of a full pack.

}  // namespace

RankSequencer::RankSequencer(const PipelineCosts& pipeline, const HdpCosts& costs,
                             const HdpProblem& problem)
    : pipeline_(pipeline), costs_(costs), problem_(problem), lone_(pipeline.stages()) {
  attention_forward_ns_.reserve(problem.shorts.size());
  for (const ShortSample& sample : problem.shorts) {
    attention_forward_ns_.push_back(pipeline.attention_forward_ns(sample.tokens));
  }
}

void RankSequencer::put(std::uint32_t item, std::size_t pack) {
  const ShortSample& sample = problem_.shorts[item];
  packs_[pack].tokens += sample.tokens;
  packs_[pack].room -= sample.tokens;
  packs_[pack].attention_ns += sample.attention_ns;
  packs_[pack].attention_forward_ns += attention_forward_ns_[item];
  pack_of_.push_back(static_cast<std::uint32_t>(pack));
}

/// Each item to the pack that has most room by the pattern; false where none can hold it.
bool RankSequencer::fill(std::span<const std::uint32_t> items, const Pattern& pattern) {
  std::uint64_t weights = 0;
  const auto weight_of = [&pattern](std::uint32_t i) {
    return std::min({kWhole, kWhole * (i + 1) / (pattern.grow + 1),
                     kWhole * (pattern.packs - i) / (pattern.shrink + 1)});
  };
  for (std::uint32_t i = 0; i < pattern.packs; ++i) weights += weight_of(i);
  std::uint64_t tokens = 0;
  for (const std::uint32_t item : items) tokens += problem_.shorts[item].tokens;
  packs_.assign(pattern.packs, {});
  for (std::uint32_t i = 0; i < pattern.packs; ++i) {
    packs_[i].room = static_cast<std::int64_t>(tokens * weight_of(i) / weights);
  }
  pack_of_.clear();
  const std::uint32_t capacity = costs_.shape().capacity_tokens;
  for (const std::uint32_t item : items) {
    const std::uint32_t size = problem_.shorts[item].tokens;
    std::size_t best = packs_.size();
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      if (packs_[i].tokens + size > capacity) continue;
      if (best == packs_.size() || packs_[i].room > packs_[best].room) best = i;
    }
    if (best == packs_.size()) return false;
    put(item, best);
  }
  time_packs();
  return true;
}

void RankSequencer::fill_first_fit(std::span<const std::uint32_t> items) {
  packs_.clear();
  pack_of_.clear();
  for (const std::uint32_t item : items) {
    const std::uint32_t size = problem_.shorts[item].tokens;
    std::size_t pack = 0;
    while (pack < packs_.size() && packs_[pack].tokens + size > costs_.shape().capacity_tokens) {
      ++pack;
    }
    if (pack == packs_.size()) packs_.emplace_back();
    put(item, pack);
  }
  time_packs();
}

void RankSequencer::time_packs() {
  phases_.clear();
  for (const Pack& pack : packs_) {
    phases_.push_back(pack.tokens == 0 ? PhaseTimes{}
                                       : pipeline_.pack(costs_, pack.attention_ns,
                                                        pack.attention_forward_ns, pack.tokens));
  }
}

std::uint64_t RankSequencer::end_ns(std::span<const PhaseTimes> gangs, std::uint32_t before) {
  tasks_.clear();
  const auto add = [this](std::size_t pack) {
    if (packs_[pack].tokens > 0) tasks_.push_back(phases_[pack]);
  };
  for (std::size_t i = 0; i < before; ++i) add(i);
  tasks_.insert(tasks_.end(), gangs.begin(), gangs.end());
  for (std::size_t i = before; i < packs_.size(); ++i) add(i);
  return lone_.end_ns(tasks_);
}

/// As `best`, if it is.
void RankSequencer::keep(std::span<const PhaseTimes> gangs, std::uint32_t before,
                         RankSequence& best) {
  const std::uint64_t end = end_ns(gangs, before);
  if (end >= best.end_ns) return;
  best.end_ns = end;
  std::vector<RankPack> packs(packs_.size());
  // pack_of_ follows the items, which the caller puts in afterwards.
  for (std::size_t i = 0; i < packs.size(); ++i) packs[i].phases = phases_[i];
  for (std::size_t place = 0; place < pack_of_.size(); ++place) {
    packs[pack_of_[place]].items.push_back(static_cast<std::uint32_t>(place));
  }
  best.before.clear();
  best.after.clear();
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].items.empty()) continue;
    (i < before ? best.before : best.after).push_back(std::move(packs[i]));
  }
}

RankSequence RankSequencer::best(std::span<const std::uint32_t> items,
                                 std::span<const PhaseTimes> gangs, const SequenceEffort& effort) {
  RankSequence best{.before = {}, .after = {}, .end_ns = UINT64_MAX};
  fill_first_fit(items);
  const auto needed = static_cast<std::uint32_t>(packs_.size());
  keep(gangs, 0, best);
  const std::uint32_t grow_most = gangs.empty() ? effort.grow : 0;
  for (std::uint32_t packs = std::max(needed, 1U); packs <= needed + effort.more_packs; ++packs) {
    if (packs > items.size()) break;
    for (std::uint32_t shrink = 0; shrink <= std::min(effort.shrink, packs); ++shrink) {
      for (std::uint32_t grow = 0; grow <= std::min(grow_most, packs); ++grow) {
        if (fill(items, {.packs = packs, .grow = grow, .shrink = shrink})) keep(gangs, 0, best);
      }
      if (gangs.empty()) continue;
      for (std::uint32_t before = 1; before <= std::min(effort.before, packs); ++before) {
        if (fill(items, {.packs = packs, .shrink = shrink})) keep(gangs, before, best);
      }
    }
  }
  for (auto* const side : {&best.before, &best.after}) {
    for (RankPack& pack : *side) {
      for (std::uint32_t& item : pack.items) item = items[item];
    }
  }
  return best;
}

}  // namespace batchloom::planning
