// SPDX-License-Identifier: Apache-2.0
// The options of what takes a pipeline file.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/quantity.h"
#include "cli/define.h"

namespace batchloom::cli {
namespace {

void define_pipeline(Options& options, std::string& pipeline) {
  options.argument("FILE", "a pipeline, in TOML", [&pipeline](const std::string& file) {
    pipeline = file;
    return Status::ok();
  });
}

void define_text(Options& options, const std::string& name, const std::string& type,
                 const std::string& help, std::optional<std::string>& value) {
  options.text(name, type, help, [&value](const std::string& text) {
    value = text;
    return Status::ok();
  });
}

void define_index_folder(Options& options, std::string& folder) {
  options.text("--index-folder", "PATH", "where indexes lie (default: beside what they index)",
               [&folder](const std::string& text) {
                 folder = text;
                 return Status::ok();
               });
}

Status parse_reclaim(const std::string& text, std::optional<Duration>& pause) {
  pause = std::nullopt;
  if (text == "never") return Status::ok();
  pause = parse_duration(text);
  if (pause && *pause > Duration::zero()) return Status::ok();
  return Status::invalid(fmt::format(
      "--reclaim-every: '{}' is neither a time, as 200ms, 5s or 10min, nor never", text));
}

/// URLs of metrics will do.
Status parse_top_place(std::string_view text, HostPort& place) {
  std::string_view bare = text;
  if (constexpr std::string_view kHttp = "http://"; bare.starts_with(kHttp)) {
    bare.remove_prefix(kHttp.size());
    bare = bare.substr(0, std::min(bare.find('/'), bare.size()));
  }
  BL_ASSIGN_OR_RETURN(place, parse_host_port("HOST:PORT", bare));
  if (place.port != 0) return Status::ok();
  return Status::invalid(fmt::format(
      "HOST:PORT: '{}' has no port; the run's log says at which one it serves metrics", text));
}

Status parse_sample_timeout(const std::string& text, Duration& timeout) {
  const std::optional<Duration> time = parse_duration(text);
  if (!time || *time <= Duration::zero()) {
    return Status::invalid(
        fmt::format("--sample-timeout: '{}' is no time, as 200ms, 5s or 10min", text));
  }
  timeout = *time;
  return Status::ok();
}

}  // namespace

void define_run(Options& options, RunPipeline& run) {
  define_pipeline(options, run.pipeline);
  options.number("--steps", "of the whole stream (default: the file's)",
                 [&run](std::uint64_t n) { run.steps = n; });
  options.text("--lead", "N|unlimited", "steps ahead of the slowest consumer (default: the file's)",
               [&run](const std::string& text) {
                 run.lead.emplace();
                 return parse_lead(text, *run.lead);
               });
  define_text(options, "--split", "NAME", "the part of every source (default: the file's)",
              run.split);
  define_text(options, "--store", "URL", "where the stream lies (default: the file's)", run.store);
  define_fsync(options, run.fsync);
  define_index_folder(options, run.index_folder);
  options.number("--change-from",
                 "settings that decide what steps hold have changed; from this step on they hold",
                 [&run](std::uint64_t step) { run.change_from = store::Step(step); });
  options.text("--reclaim-every", "TIME|never",
               "take away what nobody needs, with such pauses (default: 10s)",
               [&run](const std::string& text) { return parse_reclaim(text, run.reclaim_every); });
  options.text(
      "--sample-timeout", "TIME",
      "end where the storage of a sample or a source does not answer for so long (default: 10min)",
      [&run](const std::string& text) { return parse_sample_timeout(text, run.sample_timeout); });
  options.text("--metrics", "HOST:PORT",
               "serve metrics in Prometheus' form there, as 127.0.0.1:9464; port 0: any free one",
               [&run](const std::string& text) {
                 BL_ASSIGN_OR_RETURN(run.metrics, parse_host_port("--metrics", text));
                 return Status::ok();
               });
  options.flag("--json", "print the result as JSON", run.json);
}

void define_top(Options& options, Top& top) {
  options.argument("HOST:PORT", "where a run serves its metrics (batchloom run --metrics)",
                   [&top](const std::string& text) { return parse_top_place(text, top.place); });
  options.flag("--once", "print one view, with rates of the whole run, and end", top.once);
  options.duration("--every", "pause between two views (default: 1s)",
                   [&top](Duration pause) { top.every = pause; });
  options.check([&top] {
    if (top.every > Duration::zero()) return Status::ok();
    return Status::invalid("--every: a pause of nothing would never let the run rest");
  });
}

void define_index(Options& options, IndexSources& index) {
  define_pipeline(options, index.pipeline);
  define_index_folder(options, index.index_folder);
  options.flag("--json", "print rows as JSON", index.json);
}

void define_explain(Options& options, Explain& explain) {
  define_pipeline(options, explain.pipeline);
  options.number("--steps", "steps to foresee (default: the file's, but at most 1000)",
                 [&explain](std::uint64_t n) { explain.steps = n; });
  define_text(options, "--split", "NAME", "the part of every source (default: the file's)",
              explain.split);
  define_index_folder(options, explain.index_folder);
  options.flag("--json", "print JSON, with the same fields", explain.json);
}

}  // namespace batchloom::cli
