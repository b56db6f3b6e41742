// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "batchloom/base/spelling.h"
#include "batchloom/control/pipeline_graph.h"
#include "batchloom/control/pipeline_tokenizer.h"
#include "batchloom/control/shard_opener.h"
#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/mixture_state.h"
#include "batchloom/planning/weights_log.h"

namespace batchloom::control {
namespace {

using planning::GraphCall;

class PipelineChecker {
 public:
  PipelineChecker(const PipelineConfig& config, ReadNotes& notes)
      : config_(config), notes_(notes) {}

  void check() {
    check_names();
    check_shared_files();
    check_tokens();
    check_image();
    check_split();
    check_part_length();
    if (notes_.faults.empty()) check_weights();
    if (notes_.faults.empty()) check_planning();
  }

 private:
  void fault(std::string_view path, std::string_view reason) {
    notes_.faults.add(line_of(notes_.lines, path), fmt::format("{}: {}", path, reason));
  }
  void source_fault(std::size_t source, std::string_view key, std::string_view reason) {
    notes_.faults.add(
        line_of(notes_.lines, fmt::format("{}.{}", source_path(source), key)),
        fmt::format("source.{} of '{}': {}", key, config_.sources[source].name, reason));
  }

  void check_names() {
    if (config_.sources.size() > planning::kMaxSources) {
      fault("source",
            fmt::format("{} sources; at most {}", config_.sources.size(), planning::kMaxSources));
    }
    std::map<std::string_view, std::size_t> names;
    for (std::size_t i = 0; i < config_.sources.size(); ++i) {
      const auto [other, is_new] = names.emplace(config_.sources[i].name, i);
      if (is_new) continue;
      source_fault(i, "name",
                   fmt::format("the source of line {} is called so, too",
                               line_of(notes_.lines, source_path(other->second))));
    }
  }

  static bool is_read_alike(const SourceConfig& a, const SourceConfig& b) {
    const bool divided = is_divided(a) && is_divided(b);
    return a.fields == b.fields && a.picture == b.picture && a.loss_on == b.loss_on &&
           (!divided || a.split_by == b.split_by);
  }

  /// What lies beside a shard is made for one way to read it.
  void check_shared_files() {
    std::map<std::string_view, std::size_t> readers;
    for (std::size_t i = 0; i < config_.sources.size(); ++i) {
      for (const std::string& path : config_.sources[i].paths) {
        const auto [reader, is_first] = readers.emplace(path, i);
        const SourceConfig& other = config_.sources[reader->second];
        const SourceConfig& source = config_.sources[i];
        if (is_first || is_read_alike(source, other)) continue;
        source_fault(i, "files",
                     fmt::format("{} is read by source '{}', too, with other fields, labels or "
                                 "split_by; let one of them have a copy, or a link",
                                 shown(path), other.name));
        break;
      }
    }
  }

  static bool holds_ids(const SourceConfig& source) {
    return source.format == SourceFormat::kMegatron ||
           (source.fields && std::holds_alternative<sources::TokenFields>(*source.fields));
  }

  void check_tokens() {
    const TokensConfig& tokens = config_.tokens;
    const bool ids = tokens.tokenizer == TokenizerKind::kIds;
    bool has_text = false;
    bool has_ids = false;
    for (std::size_t i = 0; i < config_.sources.size(); ++i) {
      (holds_ids(config_.sources[i]) ? has_ids : has_text) = true;
      if (ids && !holds_ids(config_.sources[i])) {
        source_fault(i, "fields", "it has text, and tokens.tokenizer \"ids\" makes no ids of it");
      }
    }
    if (!ids && !has_text) {
      fault("tokens.tokenizer", "no source has text; say \"ids\" where all of them hold ids");
    }
    const bool python = tokens.tokenizer == TokenizerKind::kPython;
    if ((ids || has_ids || python) && !notes_.lines.contains("tokens.vocab")) {
      notes_.faults.add(
          line_of(notes_.lines, "tokens.vocab"),
          fmt::format("tokens.vocab is missing: {}, and only it tells how many there are",
                      python ? "a function of Python makes ids" : "sources hold ids"));
    }
    check_vocab();
    check_frame("tokens.begin", tokens.begin);
    check_frame("tokens.end", tokens.end);
    if (notes_.faults.empty()) check_fields();
  }

  void check_vocab() {
    const TokensConfig& tokens = config_.tokens;
    if (tokens.tokenizer == TokenizerKind::kBytes && tokens.vocab < kByteIds) {
      fault("tokens.vocab", fmt::format("{}; \"bytes\" makes {} ids", tokens.vocab, kByteIds));
    }
    const auto& model = tokens.model.content;
    if (model != nullptr && tokens.vocab < model->pieces()) {
      fault("tokens.vocab",
            fmt::format("{}; {} has {} pieces", tokens.vocab, tokens.model.file, model->pieces()));
    }
  }

  void check_image() {
    const ImageConfig& image = config_.image;
    if (!has_pictures(config_)) {
      const auto said = notes_.lines.lower_bound("image.");
      if (said != notes_.lines.end() && said->first.starts_with("image.")) {
        fault("image", "no source has pictures; name their field, as image in source.fields");
      }
      return;
    }
    if (!image.token) {
      return notes_.faults.add(line_of(notes_.lines, "image"),
                               "image.token is missing: sources have pictures, and an id stands "
                               "for each of their cells");
    }
    if (config_.tokens.tokenizer == TokenizerKind::kBytes && *image.token < kByteIds) {
      fault("image.token", fmt::format("{}; texts have it, for \"bytes\" makes the ids below {}",
                                       *image.token, kByteIds));
    }
    check_picture_length();
  }

  /// A picture goes with the first part of its record.
  void check_picture_length() {
    const sources::PictureRules& rules = config_.image.rules;
    const std::uint64_t tokens =
        config_.tokens.begin.size() + rules.max_patches / (rules.merge * rules.merge);
    if (tokens <= config_.step.max_sample_tokens) return;
    fault("image.max_patches",
          fmt::format("a picture may have {} tokens with tokens.begin, and no picture is cut: "
                      "step.max_sample_tokens is {}",
                      tokens, config_.step.max_sample_tokens));
  }

  /// What readers would refuse.
  void check_fields() {
    const auto tokenizer = make_tokenizer(config_.tokens);
    if (!tokenizer.is_ok()) return fault("tokens.tokenizer", tokenizer.status().message());
    for (std::size_t i = 0; i < config_.sources.size(); ++i) {
      const SourceConfig& source = config_.sources[i];
      if (!source.fields) continue;
      Status fit = sources::check_fields(*source.fields, source.loss_on, **tokenizer);
      if (fit.is_ok()) {
        fit = sources::check_pictures(pictures_of(source, config_.image), *source.fields,
                                      (*tokenizer)->settings());
      }
      if (!fit.is_ok()) source_fault(i, "fields", fit.message());
    }
  }

  void check_frame(std::string_view path, const std::vector<std::uint32_t>& ids) {
    const auto high =
        std::ranges::find_if(ids, [&](std::uint32_t id) { return id >= config_.tokens.vocab; });
    if (high == ids.end()) return;
    fault(path,
          fmt::format("id {} is not below tokens.vocab, which is {}", *high, config_.tokens.vocab));
  }

  void check_split() {
    std::set<std::string> names;
    for (const SourceConfig& source : config_.sources) {
      for (const auto& [name, share] : source.split) {
        if (share != 0) names.insert(name);
      }
    }
    const std::string& split = config_.run.split;
    if (names.contains(split)) return;
    const std::vector<std::string> known(names.begin(), names.end());
    const auto near = nearest_spelling(split, known);
    fault("run.split",
          fmt::format("no source has a share called {}; {}known: {}", shown(split),
                      near ? fmt::format("did you mean \"{}\"? ", *near) : std::string(),
                      fmt::join(known, ", ")));
  }

  void check_part_length() {
    const StepConfig& step = config_.step;
    if (step.unit == planning::StepUnit::kTokens && step.max_sample_tokens > step.units) {
      fault("step.max_sample_tokens",
            fmt::format("{} tokens do not fit into a step, which has step.tokens = {}",
                        step.max_sample_tokens, step.units));
    }
    const std::uint64_t ranks = ranks_of_a_part(config_);
    const std::uint64_t room = ranks * config_.topology.capacity_tokens;
    if (step.max_sample_tokens <= room) return;
    fault("step.max_sample_tokens",
          fmt::format("{} tokens do not fit: {} ranks, which one part may span with {} on {}, hold "
                      "{} tokens each, {} together",
                      step.max_sample_tokens, ranks, to_string(config_.balance.strategy),
                      model::to_string(config_.topology.axes), config_.topology.capacity_tokens,
                      room));
  }

  void check_weights() {
    const planning::MixtureConfig mixture = mixture_of(config_, 1);
    planning::MixtureState start;
    start.unit = mixture.unit;
    start.max_sample_tokens = mixture.max_sample_tokens;
    start.sources.resize(mixture.sources.size());
    const Status some = planning::check_some_weight(mixture, start);
    if (some.is_ok()) return;
    const auto first = std::ranges::find_if(config_.sources, [&](const SourceConfig& source) {
      return takes_part(source, config_.run);
    });
    source_fault(static_cast<std::size_t>(first - config_.sources.begin()), "weight",
                 fmt::format("of split {}: {}", config_.run.split, some.message()));
  }

  void check_planning() {
    const planning::GraphSpec graph = graph_of(config_);
    planning::GraphFaults faults = find_faults(graph);
    if (faults.empty()) faults = find_faults_on(config_.topology.axes, graph);
    for (const planning::GraphFault& found : faults) {
      const std::string reason = fmt::format("{}: {}", call_of(graph, found), found.reason);
      if (found.source) {
        source_fault(*found.source, "name", reason);
      } else {
        fault(found.call == GraphCall::kMix    ? "step.max_sample_tokens"
              : found.call == GraphCall::kCost ? "balance.cost_model"
                                               : "balance.strategy",
              reason);
      }
    }
  }

  const PipelineConfig& config_;
  ReadNotes& notes_;
};

}  // namespace

void check_pipeline(const PipelineConfig& config, ReadNotes& notes) {
  PipelineChecker(config, notes).check();
}

}  // namespace batchloom::control
