// SPDX-License-Identifier: Apache-2.0
#include "cli/run_metrics.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

#include "batchloom/objstore/operation.h"

namespace batchloom::cli {
namespace {

using control::SourceProgress;
using control::WaitsFor;

/// Reasons to wait, as the label has them. `kNothing` is none.
constexpr std::pair<WaitsFor, std::string_view> kReasons[] = {
    {WaitsFor::kConsumer, "consumer"},
    {WaitsFor::kRoom, "room"},
    {WaitsFor::kSources, "sources"},
    {WaitsFor::kConstructors, "constructors"}};

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

double seconds_of(Duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Families, one after the other.
class Families {
 public:
  void gauge(std::string_view name, std::string_view help, double value) {
    add(MetricKind::kGauge, name, help, {{.label = {}, .of = {}, .value = value}});
  }
  void counter(std::string_view name, std::string_view help, double value) {
    add(MetricKind::kCounter, name, help, {{.label = {}, .of = {}, .value = value}});
  }
  void add(MetricKind kind, std::string_view name, std::string_view help,
           std::vector<MetricValue> values) {
    families_.push_back({.name = fmt::format("batchloom_{}", name),
                         .help = std::string(help),
                         .kind = kind,
                         .values = std::move(values)});
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void add_build(Families& to) {
  to.add(MetricKind::kGauge, "build_info", "Always 1; the label is what was built.",
         {{.label = "version", .of = BATCHLOOM_VERSION, .value = 1}});
}

void add_steps(const control::PipelineConfig& config, const RunLook& look, Families& to) {
  const control::PipelineProgress& now = look.progress;
  to.gauge("running_seconds", "Time since the run began.", look.seconds);
  to.gauge("next_step", "Step that is committed next.", number(now.next_step.value));
  if (config.run.steps) {
    to.gauge("wanted_steps", "Steps that the stream shall have.", number(*config.run.steps));
  }
  to.counter("committed_steps_total", "Steps that this run committed.", number(now.steps));
  to.counter("committed_bytes_total", "Bytes of batch objects that this run committed.",
             number(now.bytes));
  to.counter("samples_total", "Samples of steps that were loaded and are built or committed.",
             number(now.samples));
  to.counter("tokens_total", "Tokens of these samples.", number(now.tokens));
  if (config.store.lead_steps) {
    to.gauge("lead_steps", "Steps ahead of the slowest consumer, when last looked for.",
             number(now.lead));
    to.gauge("lead_max_steps", "Steps that the run may be ahead.",
             number(*config.store.lead_steps));
  }
  to.gauge("struck_records", "Records struck out in the life of the stream.", number(now.struck));
  to.gauge("memory_bytes", "What loaders and constructors hold.", number(now.memory_bytes));
  to.gauge("memory_max_bytes", "What they may hold.", number(config.limits.memory_bytes));
  to.gauge("loader_threads", "Threads that bring samples.", number(now.loader_threads));
  to.gauge("imbalance_drawn_ratio",
           "Work of the slowest rank over the mean, dealt as drawn; mean over steps.",
           now.imbalance_before);
  to.gauge("imbalance_planned_ratio",
           "Work of the slowest rank over the mean, as planned; mean over steps.",
           now.imbalance_after);
}

void add_waits(const control::PipelineProgress& now, Families& to) {
  std::vector<MetricValue> waited;
  std::vector<MetricValue> waits;
  for (const auto& [what, name] : kReasons) {
    const std::string reason(name);
    waited.push_back({"reason", reason, seconds_of(now.waited[control::index_of(what)])});
    waits.push_back({"reason", reason, now.waits_for == what ? 1.0 : 0.0});
  }
  to.add(MetricKind::kCounter, "wait_seconds_total", "Time that planning waited, by reason.",
         std::move(waited));
  to.add(MetricKind::kGauge, "waiting", "1 for the reason that planning waits for now.",
         std::move(waits));
}

/// Values of one family, a source each.
class BySource {
 public:
  BySource(const control::PipelineConfig& config, const control::PipelineProgress& now,
           Families& to)
      : config_(config), now_(now), to_(to) {}

  void add(MetricKind kind, std::string_view name, std::string_view help,
           const std::function<double(std::size_t, const SourceProgress&)>& value) {
    std::vector<MetricValue> values;
    for (std::size_t i = 0; i < config_.sources.size(); ++i) {
      const SourceProgress source = i < now_.sources.size() ? now_.sources[i] : SourceProgress();
      values.push_back({"source", config_.sources[i].name, value(i, source)});
    }
    to_.add(kind, fmt::format("source_{}", name), help, std::move(values));
  }

 private:
  const control::PipelineConfig& config_;
  const control::PipelineProgress& now_;
  Families& to_;
};

void add_sources(const control::PipelineConfig& config, const control::PipelineProgress& now,
                 Families& to) {
  BySource by(config, now, to);
  using enum MetricKind;
  const auto drawn = [&](std::size_t, const SourceProgress& source) {
    const bool tokens = config.step.unit == planning::StepUnit::kTokens;
    const double all = number(tokens ? now.tokens : now.samples);
    return all > 0 ? number(tokens ? source.tokens : source.samples) / all : 0;
  };
  by.add(kCounter, "samples_total", "Samples of steps that were loaded.",
         [](std::size_t, const SourceProgress& source) { return number(source.samples); });
  by.add(kCounter, "tokens_total", "Tokens of these samples.",
         [](std::size_t, const SourceProgress& source) { return number(source.tokens); });
  by.add(kCounter, "read_bytes_total", "Bytes of samples that loaders brought.",
         [](std::size_t, const SourceProgress& source) { return number(source.bytes); });
  by.add(kCounter, "load_seconds_total", "Time of all loader threads together, bringing them.",
         [](std::size_t, const SourceProgress& source) { return seconds_of(source.busy); });
  by.add(kCounter, "wait_seconds_total", "Time that the run waited for this source.",
         [](std::size_t, const SourceProgress& source) { return seconds_of(source.waited); });
  by.add(kGauge, "waiting", "1 for the source that the oldest step lacks now.",
         [&](std::size_t i, const SourceProgress&) {
           return now.held_up_by && now.held_up_by->value == i ? 1.0 : 0.0;
         });
  by.add(kGauge, "wanted_ratio", "Its share, as its weight has it, of what is drawn.",
         [](std::size_t, const SourceProgress& source) { return source.share; });
  by.add(kGauge, "drawn_ratio", "Its share of what was drawn in this run.", drawn);
  by.add(
      kGauge, "passes", "Passes over it that are done.",
      [](std::size_t, const SourceProgress& source) { return static_cast<double>(source.epoch); });
  by.add(kGauge, "bad_records", "Records of it that are passed over.",
         [](std::size_t, const SourceProgress& source) { return number(source.bad_records); });
}

void add_store(const std::map<std::string, std::uint64_t>& counters, Families& to) {
  const auto count = [&](const std::string& name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : number(found->second);
  };
  const auto by_operation = [&](std::string_view name, std::string_view help,
                                std::string_view what) {
    std::vector<MetricValue> values;
    for (const objstore::Operation operation : objstore::kAllOperations) {
      const std::string of(to_string(operation));
      values.push_back({"operation", of, count(fmt::format("objstore_{}_{}", of, what))});
    }
    to.add(MetricKind::kCounter, name, help, std::move(values));
  };
  by_operation("store_requests_total", "Requests to the object store, tries anew included.",
               "calls");
  by_operation("store_errors_total", "Requests that failed.", "errors");
  by_operation("store_unavailable_total", "Requests that failed and asked for a pause.",
               "unavailable");
  to.counter("store_retries_total", "Requests that were tried anew.", count("objstore_retries"));
  to.counter("store_read_bytes_total", "Bytes that the object store gave.",
             count("objstore_get_bytes"));
  to.counter("store_written_bytes_total", "Bytes that the object store was given.",
             count("objstore_put_bytes"));
}

}  // namespace

std::vector<MetricFamily> build_metrics() {
  Families families;
  add_build(families);
  return families.take();
}

std::vector<MetricFamily> run_metrics(const control::PipelineConfig& config, const RunLook& look) {
  Families families;
  add_build(families);
  add_steps(config, look, families);
  add_waits(look.progress, families);
  add_sources(config, look.progress, families);
  add_store(look.counters, families);
  return families.take();
}

}  // namespace batchloom::cli
