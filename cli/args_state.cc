// SPDX-License-Identifier: Apache-2.0
// The options of what tells how far a stream is, and by what.
#include "batchloom/base/quantity.h"
#include "cli/define.h"

namespace batchloom::cli {
namespace {

constexpr std::string_view kStart = "start";

StatePoint point_of(const std::string& text) {
  StatePoint point{.text = text, .start = text == kStart};
  if (const auto number = parse_number(text)) point.step = store::Step(*number);
  return point;
}

void define_point(Options& options, const std::string& name, StatePoint& point) {
  options.argument(name, "a step, a file with a saved state (batch.state), or start: before step 0",
                   [&point](const std::string& text) {
                     point = point_of(text);
                     return Status::ok();
                   });
}

}  // namespace

void define_state_show(Options& options, StateShow& show) {
  define_stream(options, show.stream);
  options.number("--step", "what was committed with this step (default: the newest)",
                 [&show](std::uint64_t n) { show.at = point_of(std::to_string(n)); });
  options
      .text("--saved", "FILE", "a consumer's state, as a checkpoint has it (batch.state)",
            [&show](const std::string& file) {
              show.at = StatePoint{.text = file};
              return Status::ok();
            })
      .excludes("--step");
}

void define_state_diff(Options& options, StateDiff& diff) {
  define_stream(options, diff.stream);
  define_point(options, "A", diff.a);
  define_point(options, "B", diff.b);
}

}  // namespace batchloom::cli
