// SPDX-License-Identifier: Apache-2.0
// `batchloom store gc`
#include <fmt/format.h>

#include <cstdio>

#include "batchloom/base/log.h"
#include "batchloom/store/backoff.h"
#include "batchloom/store/reclaimer.h"
#include "cli/commands.h"
#include "cli/stop_signals.h"

namespace batchloom::cli {
namespace {

Fields describe(const store::Removal& removal) {
  Fields fields;
  fields.add("kind", store::to_string(removal.kind))
      .add("key", removal.key)
      .add("reason", removal.reason);
  return fields;
}

Fields describe(const store::ReclaimReport& report) {
  Fields fields;
  fields.add("floor", report.floor.value)
      .add("first_step", report.first_step.value)
      .add("steps_trimmed", report.steps_trimmed)
      .add("slots_removed", report.slots_removed)
      .add("segments_removed", report.segments_removed)
      .add("batches_removed", report.batches_removed)
      .add("states_removed", report.states_removed)
      .add("memberships_removed", report.memberships_removed)
      .add("failed", report.failed);
  return fields;
}

Status verdict(const store::ReclaimReport& report) {
  if (report.failed == 0) return Status::ok();
  return report.first_failure.with_context(
      fmt::format("{} objects could not be removed; the next run tries again", report.failed));
}

store::ReclaimOptions options_of(const StoreGc& args) {
  store::ReclaimOptions options{.dry_run = args.dry_run};
  if (args.dry_run || args.list) {
    options.on_removal = [json = args.stream.json](const store::Removal& removal) {
      print_row(describe(removal), json);
    };
  }
  return options;
}

Status run_once(const StoreGc& args, store::Reclaimer& reclaimer, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const store::ReclaimReport report, reclaimer.run(options_of(args), call));
  print_result(describe(report), args.stream.json);
  return verdict(report);
}

/// Until a signal. What the store is too busy for is left to the next pass.
Status run_for_ever(const StoreGc& args, store::Reclaimer& reclaimer, Runtime& runtime) {
  const StopSignals signals(runtime);
  while (!signals.came()) {
    const auto report =
        reclaimer.run(options_of(args), {.deadline = kNever, .stop = signals.token()});
    Status done = report.status();
    if (report.is_ok()) {
      print_row(describe(*report), args.stream.json);
      done = verdict(*report);
    }
    std::fflush(stdout);  // Whoever follows it sees each pass when it ends.
    if (signals.came()) break;
    if (!done.is_ok() && !store::is_transient(done)) return done;
    if (!done.is_ok()) log_warning(done.to_string());
    const Time next = runtime.now() + *args.every;
    if (!runtime.sleep_until({.deadline = next, .stop = signals.token()}).is_ok()) break;
  }
  return Status::ok();
}

}  // namespace

Status run(const StoreGc& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  store::StreamOptions options;
  options.limits.slots_kept = args.slots_kept;
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(short_call(runtime), options));
  store::Reclaimer reclaimer(*stream);
  if (args.every) return run_for_ever(args, reclaimer, runtime);
  return run_once(args, reclaimer, {});
}

}  // namespace batchloom::cli
