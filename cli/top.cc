// SPDX-License-Identifier: Apache-2.0
// `batchloom top`: a run that serves its metrics, in a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/base/log.h"
#include "cli/commands.h"
#include "cli/http_get.h"
#include "cli/metrics_text.h"
#include "cli/screen.h"
#include "cli/stop_signals.h"
#include "cli/top_view.h"

namespace batchloom::cli {
namespace {

/// A run that does not answer so often has ended.
constexpr int kTries = 3;
constexpr std::chrono::milliseconds kKeyPause{100};

Result<Scrape> scrape(const HostPort& place) {
  BL_ASSIGN_OR_RETURN(const std::string text, http_get(place, "/metrics"));
  BL_ASSIGN_OR_RETURN(Scrape values, Scrape::parse(text));
  if (values.find("batchloom_build_info")) return values;
  return Status::invalid(
      fmt::format("{} serves metrics, but not those of batchloom run --metrics", place.to_text()));
}

/// False where somebody wants it to end.
bool wait(Runtime& runtime, const Screen& screen, const CallOptions& call) {
  while (runtime.now() < call.deadline) {
    if (screen.wants_to_quit()) return false;
    const Time next = std::min(call.deadline, runtime.now() + kKeyPause);
    if (!runtime.sleep_until({.deadline = next, .stop = call.stop}).is_ok()) return false;
  }
  return true;
}

/// Until the run answers no more (its last answer), or somebody wants it to end (nothing).
Result<std::optional<TopLook>> watch(const Top& args, Runtime& runtime, const Screen& screen,
                                     const std::stop_token& stop) {
  std::optional<TopLook> last;
  Time taken = runtime.now();
  int failures = 0;
  for (;;) {
    const Time began = runtime.now();
    Result<Scrape> now = scrape(args.place);
    if (stop.stop_requested()) return std::optional<TopLook>();
    if (now.is_ok()) {
      TopLook look{.place = args.place.to_text(), .now = std::move(now).value()};
      if (last) look.before = std::move(last->now);
      look.seconds = std::chrono::duration<double>(began - taken).count();
      screen.show(top_text(look, screen.room()));
      last = std::move(look);
      taken = began;
      failures = 0;
    } else if (!last) {
      return now.status();
    } else if (++failures == kTries) {
      return last;
    }
    if (!wait(runtime, screen, {.deadline = began + args.every, .stop = stop}))
      return std::optional<TopLook>();
  }
}

}  // namespace

Status run(const Top& args, Runtime& runtime) {
  if (args.once) {
    BL_ASSIGN_OR_RETURN(Scrape now, scrape(args.place));
    print(top_text({.place = args.place.to_text(), .now = std::move(now)}, {}));
    return Status::ok();
  }
  const StopSignals signals(runtime);
  Result<std::optional<TopLook>> last(std::nullopt);
  bool was_terminal = false;
  {
    const Screen screen;
    was_terminal = screen.is_terminal();
    last = watch(args, runtime, screen, signals.token());
  }
  BL_RETURN_IF_ERROR(last.status());
  if (!*last) return Status::ok();
  // What the screen showed last went with it.
  if (was_terminal) print(top_text(**last, {}));
  log_info(fmt::format("{} answers no more: the run has ended", args.place.to_text()));
  return Status::ok();
}

}  // namespace batchloom::cli
