// SPDX-License-Identifier: Apache-2.0
#include "cli/workers_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "batchloom/base/quantity.h"
#include "cli/forecast_text.h"
#include "cli/table.h"

namespace batchloom::cli {
namespace {

using control::LoaderOutlook;
using control::PipelineConfig;

constexpr double kMicroseconds = 1e6;

double steps_per_s(const control::Partition& partition) {
  return partition.step_s > 0 ? 1 / partition.step_s : 0;
}

/// That indexing takes, of any tokenizer.
std::uint64_t indexing_threads(const PipelineConfig& config, std::uint32_t cores) {
  std::uint64_t files = 0;
  for (const control::SourceConfig& source : config.sources) files += source.paths.size();
  return std::min<std::uint64_t>(config.limits.workers.value_or(cores), files);
}

/// Of sources whose texts go to a function of Python, each thread of indexing has one.
std::uint64_t python_processes(const PipelineConfig& config, std::uint32_t cores) {
  const bool has = config.tokens.tokenizer == control::TokenizerKind::kPython;
  return has ? indexing_threads(config, cores) : 0;
}

bool shares_lane(const control::LoaderLanes& lanes, std::size_t source) {
  return std::ranges::count(lanes.of_source, lanes.of_source[source]) > 1;
}

std::uint32_t threads_of_lane(const control::LoaderLanes& lanes, std::size_t source) {
  return lanes.threads[lanes.of_source[source]];
}

Fields source_workers(const PipelineConfig& config, const LoaderOutlook& outlook,
                      std::size_t source) {
  const control::SampleCost& cost = outlook.costs[source];
  const control::LoaderLanes& lanes = outlook.partition.lanes;
  Fields fields;
  fields.add("source", config.sources[source].name)
      .add("measured_samples", cost.samples)
      .add_decimal("sample_us", cost.thread_s * kMicroseconds, 3)
      .add_decimal("cpu_us", cost.cpu_s * kMicroseconds, 3)
      .add_decimal("sample_bytes", cost.bytes, 0)
      .add_decimal("samples_per_step", outlook.demands[source].samples, 3)
      .add_decimal("busy_threads", outlook.partition.busy[source], 4)
      .add("threads", std::uint64_t{threads_of_lane(lanes, source)})
      .add("shares_threads", shares_lane(lanes, source));
  return fields;
}

std::string table_text(const PipelineConfig& config, const LoaderOutlook& outlook) {
  Table table({"source", "us of a sample", "on a core", "bytes", "samples of a step", "busy",
               "threads", ""});
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    const control::SampleCost& cost = outlook.costs[i];
    const control::LoaderLanes& lanes = outlook.partition.lanes;
    const auto measured = [&](double value) {
      return cost.samples == 0 ? std::string("-") : fmt::format("{:.1f}", value);
    };
    table.add({config.sources[i].name, measured(cost.thread_s * kMicroseconds),
               measured(cost.cpu_s * kMicroseconds), measured(cost.bytes),
               fmt::format("{:.1f}", outlook.demands[i].samples),
               fmt::format("{:.2f}", outlook.partition.busy[i]),
               std::to_string(threads_of_lane(lanes, i)), shares_lane(lanes, i) ? "shared" : ""});
  }
  return commented(table.to_text());
}

std::string rate_text(const PipelineConfig& config, const control::Partition& partition) {
  if (!partition.bound_by) return "";
  return fmt::format("; at most {:.1f} steps/s, bound by {}, most of it by source {}",
                     steps_per_s(partition), to_string(partition.bound),
                     config.sources[partition.bound_by->value].name);
}

std::string outlook_text(const PipelineConfig& config, const WorkersExplained& workers) {
  const control::Partition& partition = workers.outlook->partition;
  const std::string rate = rate_text(config, partition);
  std::string text =
      config.limits.workers
          ? fmt::format(
                "# loaders: {} threads, as limits.workers has it; \"auto\" takes {} on {} "
                "cores{}\n",
                *config.limits.workers, partition.threads, workers.cores, rate)
          : fmt::format("# loaders: {} threads on {} cores{}\n", partition.threads, workers.cores,
                        rate);
  return text + "#\n" + table_text(config, *workers.outlook);
}

double mib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// A step that is larger than what loaders may hold comes in alone, and so it does in constructors.
std::string memory_text(const PipelineConfig& config, const WorkersExplained& workers) {
  const std::uint64_t bytes = control::loader_limits(config, workers.cores).memory_bytes;
  const std::string half = bytes_text(bytes);
  if (workers.largest_step_bytes > bytes) {
    return fmt::format(
        "# memory: loaders and constructors should hold up to {} each, but steps take up to "
        "{:.1f} MiB: larger ones come one by one, each alone\n",
        half, mib(workers.largest_step_bytes));
  }
  std::string in_hand;
  if (workers.outlook) {
    in_hand = fmt::format(", of which threads have {:.1f} MiB in hand",
                          mib(workers.outlook->partition.orders_bytes));
  }
  return fmt::format("# memory: loaders hold up to {}{}; constructors up to {}\n", half, in_hand,
                     half);
}

}  // namespace

Fields workers_fields(const PipelineConfig& config, const WorkersExplained& workers) {
  const std::uint64_t half = control::loader_limits(config, workers.cores).memory_bytes;
  Fields fields;
  fields.add("cores", std::uint64_t{workers.cores})
      .add("fixed", config.limits.workers.has_value())
      .add("indexing_threads", indexing_threads(config, workers.cores))
      .add("python_processes", python_processes(config, workers.cores))
      .add("loaders_bytes", half)
      .add("constructors_bytes", half);
  if (!workers.outlook) return fields.add("threads", workers.no_outlook);
  const control::Partition& partition = workers.outlook->partition;
  std::vector<Fields> sources;
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    sources.push_back(source_workers(config, *workers.outlook, i));
  }
  fields.add("threads", std::uint64_t{config.limits.workers.value_or(partition.threads)})
      .add("auto_threads", std::uint64_t{partition.threads})
      .add("orders_bytes", partition.orders_bytes)
      .add_decimal("steps_per_s", steps_per_s(partition), 3)
      .add("bound", to_string(partition.bound));
  if (partition.bound_by) fields.add("bound_by", config.sources[partition.bound_by->value].name);
  return fields.add("sources", std::span<const Fields>(sources));
}

std::string workers_text(const PipelineConfig& config, const WorkersExplained& workers) {
  std::string text = "#\n";
  text += workers.outlook ? outlook_text(config, workers)
                          : commented("threads of loaders: " + workers.no_outlook);
  text += "#\n" + memory_text(config, workers);
  text += fmt::format("# indexing: {} threads", indexing_threads(config, workers.cores));
  const std::uint64_t processes = python_processes(config, workers.cores);
  if (processes > 0) text += fmt::format(", each with a process of Python");
  return text + "\n";
}

}  // namespace batchloom::cli
