// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/settings_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace batchloom::control {
namespace {

using planning::MixtureState;
using planning::SourceState;
using Lines = std::map<std::string_view, std::string_view>;

/// Settings of the run that decide the records, parts and order of every source.
bool is_of_all_sources(std::string_view key) {
  return key == "seed" || key == "run.split" || key == "step.max_sample_tokens" ||
         key == "step.over_length" || key.starts_with("tokens.");
}

/// Settings of a source that decide how much of it there is, and nothing of what it holds.
bool is_of_its_share(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames = {"weight", "exhausted", "epochs"};
  return std::ranges::find(kNames, name) != kNames.end();
}

Lines lines_of_all(const Membership& settings) {
  Lines lines;
  for (const MembershipLine& line : settings.lines()) {
    if (is_of_all_sources(line.key)) lines.emplace(line.key, line.value);
  }
  return lines;
}

/// Those of one source: of its share, or of what it holds.
Lines lines_of_source(const Membership& settings, const std::string& name, bool of_share) {
  const std::string prefix = fmt::format("source.{}.", name);
  Lines lines;
  auto line = std::ranges::lower_bound(settings.lines(), prefix, {}, &MembershipLine::key);
  for (; line != settings.lines().end() && line->key.starts_with(prefix); ++line) {
    const std::string_view key = std::string_view(line->key).substr(prefix.size());
    if (is_of_its_share(key) == of_share) lines.emplace(line->key, line->value);
  }
  return lines;
}

/// Which is which, by name.
using Numbers = std::map<std::string, std::size_t>;

Result<Numbers> numbers_of(const Membership& settings) {
  BL_ASSIGN_OR_RETURN(const std::vector<std::string> names, settings.sources());
  Numbers numbers;
  for (std::size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], i);
  return numbers;
}

class Change {
 public:
  Change(const SettledState& before, const SettledState& fresh)
      : before_(before), after_(fresh), state_(fresh.state) {}

  Result<PipelineState> carry_over() {
    BL_ASSIGN_OR_RETURN(numbers_before_, numbers_of(before_.settings));
    BL_ASSIGN_OR_RETURN(numbers_after_, numbers_of(after_.settings));
    BL_RETURN_IF_ERROR(check_sources());
    const MixtureState& mixture = before_.state.planner.mixture;
    state_.planner.mixture.step = mixture.step + (mixture.step_units > 0 ? 1 : 0);
    const bool with_credits = quotas_go_on();
    for (const auto& [name, from] : numbers_before_) {
      const auto to = numbers_after_.find(name);
      if (to != numbers_after_.end()) carry_source(name, from, to->second, with_credits);
    }
    std::ranges::sort(state_.struck);
    return std::move(state_);
  }

 private:
  Status check_sources() const {
    const std::size_t known = before_.state.planner.mixture.sources.size();
    if (known == numbers_before_.size()) return Status::ok();
    return Status::corruption(
        fmt::format("the settings that a pipeline's state was made by have {} sources, and the "
                    "state has {}",
                    numbers_before_.size(), known));
  }

  bool has_same(const std::string& name, bool of_share) const {
    return lines_of_source(before_.settings, name, of_share) ==
           lines_of_source(after_.settings, name, of_share);
  }

  bool quotas_go_on() const {
    const MixtureState& before = before_.state.planner.mixture;
    const MixtureState& now = state_.planner.mixture;
    return before.unit == now.unit && before.max_sample_tokens == now.max_sample_tokens &&
           std::ranges::all_of(numbers_before_, [&](const auto& source) {
             return numbers_after_.contains(source.first);
           });
  }

  void carry_source(const std::string& name, std::size_t from, std::size_t to, bool with_credit) {
    const SourceState& row = before_.state.planner.mixture.sources[from];
    SourceState& now = state_.planner.mixture.sources[to];
    if (with_credit) now.credit = row.credit;
    if (!is_same_for_all_ || !has_same(name, false)) return;
    now.epoch = row.epoch;
    now.place = row.place;
    now.part = row.part;
    now.gone = row.gone && has_same(name, true);
    for (const RecordName& record : before_.state.struck) {
      if (record.source.value != from) continue;
      state_.struck.push_back({model::SourceId(static_cast<std::uint32_t>(to)), record.record});
    }
  }

  const SettledState& before_;
  const SettledState& after_;
  PipelineState state_;
  Numbers numbers_before_;
  Numbers numbers_after_;
  const bool is_same_for_all_ = lines_of_all(before_.settings) == lines_of_all(after_.settings);
};

}  // namespace

Result<PipelineState> state_after_change(const SettledState& before, const SettledState& fresh) {
  return Change(before, fresh).carry_over();
}

}  // namespace batchloom::control
