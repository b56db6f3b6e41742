// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/graph_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace batchloom::planning {
namespace {

constexpr std::size_t kNamesShown = 12;

std::string names_of(std::span<const SourceRecords> sources) {
  if (sources.empty()) return "nothing";
  std::string text;
  for (std::size_t i = 0; i < std::min(sources.size(), kNamesShown); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", sources[i].name);
  }
  if (sources.size() > kNamesShown) {
    text += fmt::format(" and {} more", sources.size() - kNamesShown);
  }
  return text;
}

}  // namespace

Result<MixtureConfig> mixture_config(const MixSpec& mix, std::span<const SourceRecords> sources) {
  std::map<std::string_view, const MixSource*> by_name;
  for (const MixSource& source : mix.sources) by_name.emplace(source.name, &source);
  MixtureConfig config{.seed = mix.seed,
                       .unit = mix.unit,
                       .units_per_step = mix.units_per_step,
                       .max_sample_tokens = mix.max_sample_tokens};
  for (const SourceRecords& source : sources) {
    const auto found = by_name.find(source.name);
    if (found == by_name.end()) {
      return Status::invalid(fmt::format(
          "mix: source '{}' of the metadata is not named; name it, with weight 0 if nothing of it "
          "is wanted",
          source.name));
    }
    const MixSource& settings = *found->second;
    config.sources.push_back({.records = source.records,
                              .weight = settings.weight,
                              .exhausted = settings.exhausted,
                              .epochs = settings.epochs,
                              .order = settings.order});
    by_name.erase(found);
  }
  if (!by_name.empty()) {
    return Status::invalid(fmt::format("mix: there is no source '{}'; the metadata has {}",
                                       by_name.begin()->first, names_of(sources)));
  }
  BL_RETURN_IF_ERROR(check_config(config));
  return config;
}

}  // namespace batchloom::planning
