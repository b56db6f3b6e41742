// SPDX-License-Identifier: Apache-2.0
// `batchloom state diff`: what lies between two places in a stream, whichever comes first.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "batchloom/store/manifest_reader.h"
#include "cli/commands.h"
#include "cli/state_place.h"
#include "cli/step_draws.h"

namespace batchloom::cli {
namespace {

/// Records that are struck out, by source and number.
using Struck = std::vector<std::pair<std::string, std::uint64_t>>;

/// The two places, in the stream's order.
struct Between {
  StatePlace from;
  StatePlace to;
  bool has_steps() const { return from.next_step < to.next_step; }
  /// Whether two consumers that are equally far were given different samples on their way.
  bool other_samples() const {
    return from.saved && to.saved && !has_steps() &&
           from.saved->samples_hash != to.saved->samples_hash;
  }
};

/// What is struck out of plans there. nullopt where that is not known any more.
Result<std::optional<Struck>> struck_at(const store::Stream& stream, store::Step next_step,
                                        const CallOptions& call) {
  if (next_step == store::Step(0)) return std::optional(Struck());
  BL_ASSIGN_OR_RETURN(const auto stored, control::find_stored_state(stream, next_step - 1, call));
  if (!stored) return std::optional<Struck>();
  BL_ASSIGN_OR_RETURN(const auto settings, control::read_settings(stream, next_step - 1, call));
  if (!settings) return std::optional<Struck>();  // Trimmed, and with them what sources are called.
  BL_ASSIGN_OR_RETURN(const auto names, source_names(settings, stored->state));
  Struck struck;
  for (const control::RecordName& record : stored->state.struck) {
    struck.emplace_back(name_of(record.source, names), record.record.value);
  }
  std::ranges::sort(struck);
  return std::optional(std::move(struck));
}

Status add_struck(const store::Stream& stream, const Between& span, Fields& fields,
                  const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto before, struck_at(stream, span.from.next_step, call));
  BL_ASSIGN_OR_RETURN(const auto after, struck_at(stream, span.to.next_step, call));
  if (!before || !after) {
    fields.add("struck",
               fmt::format("unknown: the state before step {}, or its settings, were removed since",
                           (before ? span.to : span.from).next_step.value));
    return Status::ok();
  }
  Struck added;
  std::ranges::set_difference(*after, *before, std::back_inserter(added));
  std::vector<Fields> rows;
  for (const auto& [source, record] : added) {
    rows.emplace_back().add("source", source).add("record", record);
  }
  fields.add("struck", std::span<const Fields>(rows));
  return Status::ok();
}

/// The settings of the steps in between, beside those that the first of them was reached by.
Status add_settings(const store::Stream& stream, const store::Head& head, const Between& span,
                    Fields& fields, const CallOptions& call) {
  const store::Step first = span.from.next_step;
  const store::Step seen = first == store::Step(0) ? first : first - 1;
  BL_ASSIGN_OR_RETURN(auto before, control::read_settings(stream, seen, call));
  std::vector<Fields> rows;
  for (const store::MembershipRow& row : head.memberships) {
    if (row.from_step <= seen || row.from_step >= span.to.next_step) continue;
    BL_ASSIGN_OR_RETURN(auto now, control::read_settings(stream, row.from_step, call));
    if (!now) continue;  // Trimmed meanwhile.
    const auto told = before ? control::differences(before->settings, now->settings)
                             : std::vector<std::string>{"(nobody knows any more what held before)"};
    for (const std::string& line : told) {
      rows.emplace_back().add("from_step", row.from_step.value).add("change", line);
    }
    before = std::move(now);
  }
  fields.add("settings", std::span<const Fields>(rows));
  return Status::ok();
}

void add_drawn(const StepDraws& draws, Fields& fields) {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  for (const auto& [name, source] : draws) {
    samples += source.samples;
    tokens += source.tokens;
  }
  std::vector<Fields> rows;
  for (const auto& [name, source] : draws) {
    rows.emplace_back()
        .add("source", name)
        .add("samples", source.samples)
        .add("tokens", source.tokens)
        .add_decimal("share_of_tokens",
                     static_cast<double>(source.tokens) / static_cast<double>(tokens), 6)
        .add("first_pass", std::uint64_t{source.first_pass.value})
        .add("last_pass", std::uint64_t{source.last_pass.value});
  }
  fields.add("samples", samples)
      .add("tokens", tokens)
      .add("sources", std::span<const Fields>(rows));
}

Result<Fields> describe(const store::Stream& stream, const store::Head& head, const Between& span) {
  Fields fields;
  const bool equal = !span.has_steps() && !span.other_samples();
  fields.add("equal", equal)
      .add("first_step", span.from.next_step.value)
      .add("end_step", span.to.next_step.value)
      .add("steps", span.to.next_step - span.from.next_step);
  if (span.other_samples()) {
    fields.add("samples_hash",
               fmt::format("{:016x} and {:016x}: they did not begin at one step",
                           span.from.saved->samples_hash, span.to.saved->samples_hash));
  }
  if (!span.has_steps()) return fields;
  BL_ASSIGN_OR_RETURN(const StepDraws draws,
                      draws_of(stream, head, {span.from.next_step, span.to.next_step}));
  add_drawn(draws, fields);
  const CallOptions call = short_call(stream.runtime());  // Reading them may have taken long.
  BL_RETURN_IF_ERROR(add_settings(stream, head, span, fields, call));
  BL_RETURN_IF_ERROR(add_struck(stream, span, fields, call));
  return fields;
}

}  // namespace

Status run(const StateDiff& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto open, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, open->open_stream(call));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  Between span;
  BL_ASSIGN_OR_RETURN(span.from, find_place(args.a, *stream, head->head, call));
  BL_ASSIGN_OR_RETURN(span.to, find_place(args.b, *stream, head->head, call));
  if (span.to.next_step < span.from.next_step) std::swap(span.from, span.to);
  BL_ASSIGN_OR_RETURN(const Fields fields, describe(*stream, head->head, span));
  print_result(fields, args.stream.json);
  if (!span.has_steps() && !span.other_samples()) return Status::ok();
  const std::uint64_t steps = span.to.next_step - span.from.next_step;
  return Status::invalid(
      fmt::format("{} and {} differ: {} lie{} between them", args.a.text, args.b.text,
                  steps == 1 ? "1 step" : fmt::format("{} steps", steps), steps == 1 ? "s" : ""));
}

}  // namespace batchloom::cli
