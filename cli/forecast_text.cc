// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "cli/table.h"

namespace batchloom::cli {
namespace {

using control::Forecast;
using control::PipelineConfig;
using control::SourceForecast;

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

Fields source_fields(const Forecast& forecast, const std::string& name,
                     const SourceForecast& source) {
  Fields fields;
  fields.add("source", name)
      .add("samples", source.samples)
      .add("tokens", source.tokens)
      .add_decimal("share", share(source.tokens, forecast.tokens), 6)
      .add_decimal("passes", source.passes, 4)
      .add("gone", source.gone);
  if (source.first_step) fields.add("first_step", source.first_step->value);
  if (source.last_step) fields.add("last_step", source.last_step->value);
  return fields;
}

Fields ratio_fields(const control::RatioOverSteps& ratio) {
  Fields fields;
  fields.add("steps", ratio.steps)
      .add_decimal("mean", ratio.mean, 4)
      .add_decimal("worst", ratio.worst, 4);
  return fields;
}

std::string sources_text(const PipelineConfig& config, const Forecast& forecast) {
  Table table({"source", "samples", "tokens", "share", "passes", "first step", "last step", ""});
  for (std::size_t i = 0; i < forecast.sources.size(); ++i) {
    const SourceForecast& source = forecast.sources[i];
    const auto step = [](const auto& number) {
      return number ? std::to_string(number->value) : std::string("-");
    };
    table.add({config.sources[i].name, std::to_string(source.samples),
               std::to_string(source.tokens),
               fmt::format("{:.2f} %", 100 * share(source.tokens, forecast.tokens)),
               fmt::format("{:.2f}", source.passes), step(source.first_step),
               step(source.last_step), source.gone ? "gone" : ""});
  }
  return commented(table.to_text());
}

std::string lengths_text(const Forecast& forecast) {
  Table table({"tokens of a sample", "samples", "of all", "of tokens"});
  for (const control::LengthBand& band : forecast.lengths) {
    table.add({fmt::format("{} to {}", band.tokens_max / 2 + 1, band.tokens_max),
               std::to_string(band.samples),
               fmt::format("{:.2f} %", 100 * share(band.samples, forecast.samples)),
               fmt::format("{:.2f} %", 100 * share(band.tokens, forecast.tokens))});
  }
  return commented(table.to_text());
}

std::string balance_text(const Forecast& forecast) {
  const auto& [before, after, gap] =
      std::tie(forecast.imbalance_before, forecast.imbalance_after, forecast.gap);
  std::string text = fmt::format(
      "# slowest rank over mean: {:.3f} as drawn, {:.3f} as planned, {:.3f} in the worst step\n",
      before.mean, after.mean, after.worst);
  if (gap.steps > 0) {
    text += fmt::format("# step over its lower bound: {:.3f}, {:.3f} in the worst\n", gap.mean,
                        gap.worst);
  }
  return text;
}

}  // namespace

std::string commented(const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    text += fmt::format("# {}\n", lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

Fields forecast_fields(const PipelineConfig& config, const Forecast& forecast) {
  std::vector<Fields> sources;
  for (std::size_t i = 0; i < forecast.sources.size(); ++i) {
    sources.push_back(source_fields(forecast, config.sources[i].name, forecast.sources[i]));
  }
  std::vector<Fields> lengths;
  for (const control::LengthBand& band : forecast.lengths) {
    lengths.emplace_back()
        .add("tokens_max", band.tokens_max)
        .add("samples", band.samples)
        .add("tokens", band.tokens);
  }
  Fields fields;
  fields.add("steps", forecast.steps)
      .add("samples", forecast.samples)
      .add("tokens", forecast.tokens)
      .add("sources_stop", forecast.sources_stop)
      .add("longest_tokens", std::uint64_t{forecast.longest_tokens})
      .add("largest_step_bytes", forecast.largest_step_bytes)
      .add("sources", std::span<const Fields>(sources))
      .add("lengths", std::span<const Fields>(lengths))
      .add("imbalance_before", ratio_fields(forecast.imbalance_before))
      .add("imbalance_after", ratio_fields(forecast.imbalance_after))
      .add("gap", ratio_fields(forecast.gap));
  return fields;
}

std::string forecast_text(const PipelineConfig& config, const Forecast& forecast) {
  std::string text = fmt::format(
      "#\n# a new stream's first {} steps{}: {} samples, {} tokens\n#\n", forecast.steps,
      forecast.sources_stop ? ", after which sources stop" : "", forecast.samples, forecast.tokens);
  if (forecast.steps == 0 && forecast.sources_stop) {
    text += "# the sources stop before the first step: a run refuses that\n";
  }
  if (forecast.steps == 0) return text;
  return text + sources_text(config, forecast) + "#\n" + lengths_text(forecast) + "#\n" +
         balance_text(forecast);
}

}  // namespace batchloom::cli
