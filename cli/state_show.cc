// SPDX-License-Identifier: Apache-2.0
// `batchloom state show`
#include <fmt/format.h>

#include <cmath>

#include "batchloom/control/source_reader.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"
#include "cli/state_place.h"
#include "cli/step_draws.h"

namespace batchloom::cli {
namespace {

using control::RecordedSettings;
using planning::MixtureState;
using planning::SourceState;

/// A step, and what was committed with it.
struct CommittedStep {
  store::Step step;
  store::Entry entry;
  StepDraws draws;  ///< Of it alone.
  std::optional<RecordedSettings> settings;
  std::optional<control::StoredState> state;  ///< Where it is still there.
};

Result<CommittedStep> read_step(const store::Stream& stream, const store::Head& head,
                                store::Step step, const CallOptions& call) {
  CommittedStep found{.step = step, .entry = {}, .draws = {}, .settings = {}, .state = {}};
  store::SegmentReader segments(stream);
  BL_ASSIGN_OR_RETURN(found.entry, segments.find(head, step, call));
  BL_RETURN_IF_ERROR(check_made_by_pipeline(found.entry));
  BL_ASSIGN_OR_RETURN(found.state, control::find_stored_state(stream, step, call));
  BL_ASSIGN_OR_RETURN(found.settings, control::read_settings(stream, step, call));
  if (!found.settings) found.state.reset();  // Trimmed meanwhile: nobody knows its sources' names.
  BL_ASSIGN_OR_RETURN(found.draws, draws_of(stream, head, {step, step + 1}));
  return found;
}

void add_saved(const client::ConsumerState& saved, const store::Head& head, Fields& fields) {
  fields.add("saved_next_step", saved.next_step.value)
      .add("samples_hash", fmt::format("{:016x}", saved.samples_hash));
  if (!saved.last) return;
  const bool compared = saved.last->step >= head.first_step;
  fields.add("last_step", saved.last->step.value)
      .add("samples_digest", fmt::format("{:016x}", saved.last->samples_digest))
      .add("same_samples", compared ? "yes: the stream has them" : "unknown: the step was trimmed");
}

/// The weights of sources in one step, in billionths.
class Weights {
 public:
  /// By settings, where there are some, and by live updates in force.
  static Result<Weights> create(const CommittedStep& step, std::span<const std::string> names) {
    Weights weights;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const SourceState* state =
          step.state ? &step.state->state.planner.mixture.sources[i] : nullptr;
      BL_ASSIGN_OR_RETURN(const auto weight, weight_of(step, names[i], state));
      weights.by_source_.push_back(weight);
      if (weight && (state == nullptr || !state->gone)) weights.sum_ += weight->value;
    }
    return weights;
  }

  void add(std::size_t source, bool gone, Fields& row) const {
    if (!by_source_[source]) return;
    const auto weight = static_cast<double>(by_source_[source]->value);
    row.add_decimal("weight", weight * 1e-9, 6);
    const double share = gone || sum_ == 0 ? 0 : weight / static_cast<double>(sum_);
    row.add_decimal("share", share, 6);
  }

 private:
  static Result<std::optional<planning::Weight>> weight_of(const CommittedStep& step,
                                                           const std::string& name,
                                                           const SourceState* state) {
    if (state != nullptr && state->set_weight) return state->set_weight;
    if (!step.settings) return std::optional<planning::Weight>();
    const std::string key = fmt::format("source.{}.weight", name);
    for (const control::MembershipLine& line : step.settings->settings.lines()) {
      if (line.key != key) continue;
      BL_ASSIGN_OR_RETURN(const planning::Schedule schedule, control::parse_weight(line.value));
      return std::optional(schedule.at(step.step));
    }
    return std::optional<planning::Weight>();
  }

  std::vector<std::optional<planning::Weight>> by_source_;
  std::uint64_t sum_ = 0;  ///< Of those that are not gone.
};

void add_planner_state(const MixtureState& mixture, const SourceState& source, Fields& row) {
  const double units =
      std::ldexp(static_cast<double>(source.credit), -planning::share_bits(mixture.unit));
  row.add("epoch", std::uint64_t{source.epoch.value})
      .add("place", source.place)
      .add("part", std::uint64_t{source.part.value})
      .add_decimal("credit", units, 3)
      .add("gone", source.gone);
}

/// What the step's settings, or, where they are trimmed, its batch say of sources.
Result<std::vector<std::string>> names_of(const CommittedStep& step) {
  if (step.state) return source_names(step.settings, step.state->state);
  if (step.settings) return step.settings->settings.sources();
  std::vector<std::string> names;
  for (const auto& [name, draws] : step.draws) names.push_back(name);
  return names;
}

Status add_sources(const CommittedStep& step, std::span<const std::string> names, Fields& fields) {
  BL_ASSIGN_OR_RETURN(const Weights weights, Weights::create(step, names));
  std::vector<Fields> rows;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Fields& row = rows.emplace_back();
    row.add("source", names[i]);
    const auto drawn = step.draws.find(names[i]);
    const SourceDraws draws = drawn == step.draws.end() ? SourceDraws() : drawn->second;
    row.add("samples", draws.samples).add("tokens", draws.tokens);
    const MixtureState* mixture = step.state ? &step.state->state.planner.mixture : nullptr;
    weights.add(i, mixture != nullptr && mixture->sources[i].gone, row);
    if (mixture != nullptr) add_planner_state(*mixture, mixture->sources[i], row);
  }
  fields.add("sources", std::span<const Fields>(rows));
  return Status::ok();
}

void add_struck(const control::PipelineState& state, std::span<const std::string> names,
                Fields& fields) {
  std::vector<Fields> rows;
  for (const control::RecordName& record : state.struck) {
    rows.emplace_back()
        .add("source", name_of(record.source, names))
        .add("record", record.record.value);
  }
  fields.add("struck", std::span<const Fields>(rows));
}

Status add_step(const CommittedStep& step, Fields& fields) {
  BL_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_of(step));
  fields.add("step", step.step.value)
      .add("producer", step.entry.producer)
      .add("term", step.entry.term.value)
      .add("seq", step.entry.seq.value)
      .add("key", store::data_key(step.entry.object()));
  if (step.settings) {
    fields.add("membership", step.settings->settings.digest().to_string())
        .add("membership_from_step", step.settings->from_step.value);
  }
  if (!step.state) {
    fields.add("state", "removed: a newer one was committed since; `store gc` removes what is old");
    return add_sources(step, names, fields);
  }
  const MixtureState& mixture = step.state->state.planner.mixture;
  fields.add("state_after_step", step.state->next_step.value - 1)
      .add("ended", mixture.ended)
      .add("weights_version", std::uint64_t{mixture.version.value});
  BL_RETURN_IF_ERROR(add_sources(step, names, fields));
  add_struck(step.state->state, names, fields);
  return Status::ok();
}

/// The step that is asked for, or that before the place; nullopt: nothing was committed before it,
/// or it was trimmed.
std::optional<store::Step> step_to_show(const StateShow& args, const StatePlace& place,
                                        const store::Head& head) {
  if (args.at && args.at->step) return args.at->step;
  if (place.next_step <= head.first_step) return std::nullopt;
  return place.next_step - 1;
}

}  // namespace

Status run(const StateShow& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto open, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, open->open_stream(call));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  StatePlace place{.next_step = head->head.next_step};
  if (args.at && args.at->is_file()) {
    BL_ASSIGN_OR_RETURN(place, find_place(*args.at, *stream, head->head, call));
  }
  const std::optional<store::Step> step = step_to_show(args, place, head->head);
  if (!step && !place.saved) {
    return Status::not_found(fmt::format(
        "{}: it holds no step, and step {} comes next: nothing was committed that could be told of",
        args.stream.location.url, head->head.next_step.value));
  }
  Fields fields;
  fields.add("stream", stream->uuid().to_string());
  if (place.saved) add_saved(*place.saved, head->head, fields);
  if (step) {
    BL_ASSIGN_OR_RETURN(const CommittedStep found, read_step(*stream, head->head, *step, call));
    BL_RETURN_IF_ERROR(add_step(found, fields));
  }
  print_result(fields, args.stream.json);
  return Status::ok();
}

}  // namespace batchloom::cli
