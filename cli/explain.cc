// SPDX-License-Identifier: Apache-2.0
// `batchloom explain`: a pipeline as it is understood. The text is a pipeline file again: what it
// adds stands in comments.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/control/pipeline_describe.h"
#include "batchloom/control/pipeline_toml.h"
#include "batchloom/control/source_files.h"
#include "batchloom/planning/toml_text.h"
#include "cli/commands.h"
#include "cli/pipeline_inputs.h"

namespace batchloom::cli {
namespace {

constexpr std::size_t kFilesShown = 10;
constexpr std::string_view kUnknown = "unknown until indexed";

Fields topology_fields(const control::PipelineConfig& config) {
  const model::Topology& axes = config.topology.axes;
  const std::uint64_t ranks = control::ranks_of_a_part(config);
  Fields fields;
  fields.add("ranks", std::uint64_t{axes.world_size()})
      .add("hdp_ranks", std::uint64_t{axes.hdp_size()})
      .add("ranks_of_a_part", ranks)
      .add("longest_part_tokens", ranks * config.topology.capacity_tokens);
  return fields;
}

Fields source_fields(const control::PipelineConfig& config, const control::SourceConfig& source) {
  Fields fields;
  fields.add("source", source.name)
      .add("format", to_string(source.format))
      .add("takes_part", control::takes_part(source, config.run))
      .add("records", kUnknown)
      .add("tokens", kUnknown)
      .add("files", std::span<const std::string>(source.paths));
  return fields;
}

std::string to_json(const control::PipelineFile& pipeline) {
  std::vector<Fields> settings;
  for (const control::Setting& setting : control::settings_of(pipeline.config, pipeline.lines)) {
    settings.emplace_back()
        .add("key", setting.path())
        .add("value", setting.value)
        .add("origin", to_string(setting.origin));
  }
  std::vector<Fields> sources;
  for (const control::SourceConfig& source : pipeline.config.sources) {
    sources.push_back(source_fields(pipeline.config, source));
  }
  Fields fields;
  fields.add("pipeline", pipeline.file)
      .add("settings", std::span<const Fields>(settings))
      .add("topology", topology_fields(pipeline.config))
      .add("sources", std::span<const Fields>(sources));
  return fields.to_json() + '\n';
}

std::string topology_text(const control::PipelineConfig& config) {
  const model::Topology& axes = config.topology.axes;
  const std::uint32_t ranks = control::ranks_of_a_part(config);
  return fmt::format(
      "# ranks: {}, HDP ranks: {}; one part may span {} of them, and have {} tokens\n",
      axes.world_size(), axes.hdp_size(), ranks,
      std::uint64_t{ranks} * config.topology.capacity_tokens);
}

std::string source_text(const control::PipelineConfig& config,
                        const control::SourceConfig& source) {
  const bool takes_part = control::takes_part(source, config.run);
  const std::size_t files = source.paths.size();
  std::string text =
      fmt::format("#\n# source {}: {}, {} file{}{}\n# records: {}\n# tokens: {}\n", source.name,
                  to_string(source.format), files, files == 1 ? "" : "s",
                  takes_part ? "" : "; nothing of it is in this split", kUnknown, kUnknown);
  for (std::size_t i = 0; i < std::min(files, kFilesShown); ++i) {
    text += fmt::format("#   {}\n", planning::toml_quoted(source.paths[i]));
  }
  if (files > kFilesShown) {
    text += fmt::format("#   and {} more, which --json lists\n", files - kFilesShown);
  }
  return text;
}

}  // namespace

Status run(const Explain& args, Runtime&) {
  BL_ASSIGN_OR_RETURN(const control::PipelineFile pipeline,
                      control::read_pipeline(args.pipeline, disk_inputs()));
  if (args.json) {
    print(to_json(pipeline));
    return Status::ok();
  }
  std::string text = control::describe(pipeline) + '\n' + topology_text(pipeline.config);
  for (const control::SourceConfig& source : pipeline.config.sources) {
    text += source_text(pipeline.config, source);
  }
  print(text);
  return Status::ok();
}

}  // namespace batchloom::cli
