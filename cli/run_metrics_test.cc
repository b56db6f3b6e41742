// SPDX-License-Identifier: Apache-2.0
#include "cli/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string_view>

namespace batchloom::cli {
namespace {

using control::WaitsFor;
using std::chrono::milliseconds;

control::PipelineConfig two_sources() {
  control::PipelineConfig config;
  config.sources.resize(2);
  config.sources[0].name = "docs";
  config.sources[1].name = "a \"code\"";
  config.store.lead_steps = 32;
  config.run.steps = 100;
  config.limits.memory_bytes = 1000;
  return config;
}

RunLook busy_run() {
  RunLook look{.seconds = 2.5};
  control::PipelineProgress& now = look.progress;
  now.next_step = model::Step(41);
  now.steps = 11;
  now.samples = 40;
  now.tokens = 400;
  now.bytes = 5000;
  now.struck = 3;
  now.memory_bytes = 700;
  now.loader_threads = 6;
  now.imbalance_before = 1.75;
  now.imbalance_after = 1.25;
  now.lead = 12;
  now.waits_for = WaitsFor::kSources;
  now.held_up_by = model::SourceId(1);
  now.waited[control::index_of(WaitsFor::kConsumer)] = milliseconds(1500);
  now.waited[control::index_of(WaitsFor::kNothing)] = milliseconds(900);
  now.sources = {{.samples = 30,
                  .tokens = 100,
                  .share = 0.3,
                  .epoch = 2,
                  .bad_records = 4,
                  .bytes = 900,
                  .busy = milliseconds(250),
                  .waited = milliseconds(50)},
                 {.samples = 10, .tokens = 300, .share = 0.7}};
  look.counters = {{"objstore_get_calls", 7},       {"objstore_put_errors", 2},
                   {"objstore_put_unavailable", 1}, {"objstore_retries", 5},
                   {"objstore_get_bytes", 600},     {"objstore_put_bytes", 601}};
  return look;
}

/// Of the value with this label, or of the only one; absent where there is none.
std::optional<double> value_of(const std::vector<MetricFamily>& families, std::string_view name,
                               std::string_view label = {}) {
  for (const MetricFamily& family : families) {
    if (family.name != name) continue;
    for (const MetricValue& value : family.values) {
      if (value.of == label) return value.value;
    }
  }
  return std::nullopt;
}

TEST(RunMetrics, AreWhatTheRunIs) {
  const std::vector<MetricFamily> families = run_metrics(two_sources(), busy_run());
  const auto is = [&](std::string_view name, std::string_view label, double value) {
    EXPECT_EQ(value_of(families, name, label), value) << name << " " << label;
  };
  is("batchloom_build_info", BATCHLOOM_VERSION, 1);
  is("batchloom_running_seconds", "", 2.5);
  is("batchloom_next_step", "", 41);
  is("batchloom_wanted_steps", "", 100);
  is("batchloom_committed_steps_total", "", 11);
  is("batchloom_committed_bytes_total", "", 5000);
  is("batchloom_samples_total", "", 40);
  is("batchloom_tokens_total", "", 400);
  is("batchloom_lead_steps", "", 12);
  is("batchloom_lead_max_steps", "", 32);
  is("batchloom_struck_records", "", 3);
  is("batchloom_memory_bytes", "", 700);
  is("batchloom_memory_max_bytes", "", 1000);
  is("batchloom_loader_threads", "", 6);
  is("batchloom_imbalance_drawn_ratio", "", 1.75);
  is("batchloom_imbalance_planned_ratio", "", 1.25);
  is("batchloom_wait_seconds_total", "consumer", 1.5);
  is("batchloom_wait_seconds_total", "room", 0);
  is("batchloom_waiting", "sources", 1);
  is("batchloom_waiting", "consumer", 0);
  is("batchloom_source_samples_total", "docs", 30);
  is("batchloom_source_tokens_total", "a \"code\"", 300);
  is("batchloom_source_read_bytes_total", "docs", 900);
  is("batchloom_source_load_seconds_total", "docs", 0.25);
  is("batchloom_source_wait_seconds_total", "docs", 0.05);
  is("batchloom_source_waiting", "docs", 0);
  is("batchloom_source_waiting", "a \"code\"", 1);
  is("batchloom_source_wanted_ratio", "docs", 0.3);
  is("batchloom_source_drawn_ratio", "docs", 0.25);
  is("batchloom_source_passes", "docs", 2);
  is("batchloom_source_bad_records", "docs", 4);
  is("batchloom_store_requests_total", "get", 7);
  is("batchloom_store_errors_total", "put", 2);
  is("batchloom_store_unavailable_total", "put", 1);
  is("batchloom_store_retries_total", "", 5);
  is("batchloom_store_read_bytes_total", "", 600);
  is("batchloom_store_written_bytes_total", "", 601);
}

TEST(RunMetrics, OfStepsThatCountSamplesSharesAreOfSamples) {
  control::PipelineConfig config = two_sources();
  config.step.unit = planning::StepUnit::kSamples;
  EXPECT_EQ(value_of(run_metrics(config, busy_run()), "batchloom_source_drawn_ratio", "docs"),
            0.75);
}

TEST(RunMetrics, BoundsThatAreNotThereAreLeftOut) {
  control::PipelineConfig config = two_sources();
  config.store.lead_steps = std::nullopt;
  config.run.steps = std::nullopt;
  const std::vector<MetricFamily> families = run_metrics(config, busy_run());
  for (const std::string_view name :
       {"batchloom_lead_steps", "batchloom_lead_max_steps", "batchloom_wanted_steps"}) {
    EXPECT_EQ(value_of(families, name), std::nullopt) << name;
  }
}

TEST(RunMetrics, BeforeAnythingIsDrawnAllIsZero) {
  const std::vector<MetricFamily> families = run_metrics(two_sources(), {});
  EXPECT_EQ(value_of(families, "batchloom_source_drawn_ratio", "docs"), 0);
  EXPECT_EQ(value_of(families, "batchloom_source_tokens_total", "docs"), 0);
  EXPECT_EQ(value_of(families, "batchloom_store_requests_total", "list"), 0);
}

TEST(RunMetrics, NamesFollowTheConventions) {
  std::set<std::string> names;
  for (const MetricFamily& family : run_metrics(two_sources(), busy_run())) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.name.starts_with("batchloom_")) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.kind == MetricKind::kCounter) << family.name;
    EXPECT_TRUE(family.help.ends_with(".")) << family.name;
    EXPECT_EQ(family.help.find('\n'), std::string::npos) << family.name;
    std::set<std::string> labels;
    for (const MetricValue& value : family.values) {
      EXPECT_TRUE(labels.insert(value.of).second) << family.name << " " << value.of;
    }
  }
}

}  // namespace
}  // namespace batchloom::cli
