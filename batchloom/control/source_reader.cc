// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "batchloom/base/spelling.h"
#include "batchloom/control/pipeline_text.h"
#include "batchloom/control/source_files.h"
#include "batchloom/planning/toml_text.h"
#include "batchloom/sources/sidecar_index.h"
#include "batchloom/sources/split_keys.h"
#include "batchloom/store/keys.h"

namespace batchloom::control {
namespace {

using planning::Schedule;
using planning::Weight;
using sources::LossOn;

constexpr std::uint64_t kMaxShare = 1'000'000'000;

void read_source_name(TableReader& table, SourceConfig& source) {
  table.need("name");
  table.text("name", source.name);
  if (!table.has("name")) return;
  const Status fit = store::validate_name("source", source.name);
  if (!fit.is_ok()) table.fault("name", fit.message());
}

// --- files and format --------------------------------------------------------------------------

std::optional<SourceFormat> read_given_format(TableReader& table) {
  std::string name;
  table.text("format", name);
  if (name.empty()) return std::nullopt;
  const KnownFormat* known = format_of_name(name);
  if (known != nullptr && known->built) return known->built;
  if (known != nullptr) {
    table.fault("format", fmt::format("{} is not built yet; there are {}", name, built_formats()));
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const KnownFormat& format : known_formats()) names.emplace_back(format.name);
  const auto near = nearest_spelling(name, names);
  table.fault("format",
              fmt::format("{} is unknown; {}known: {}", shown(name),
                          near ? fmt::format("did you mean \"{}\"? ", *near) : std::string(),
                          built_formats()));
  return std::nullopt;
}

/// What the pattern matches; a fault where that is nothing.
void expand_pattern(TableReader& table, const TomlNode& node, const SourceContext& context,
                    std::vector<MatchedFiles>& matched) {
  if (!node.is(TomlType::kText)) {
    table.fault_at(node, "files",
                   fmt::format("a pattern is expected, not {}", to_string(node.type)));
    return;
  }
  if (node.text.empty()) {
    table.fault_at(node, "files", "an empty pattern");
    return;
  }
  if (node.text.find("://") != std::string::npos) {
    table.fault_at(node, "files",
                   fmt::format("{}: sources in object stores are not built yet; local paths are",
                               shown(node.text)));
    return;
  }
  auto paths = context.inputs.expand(path_beside(context.file, node.text));
  // Those beside the files, of an earlier run.
  if (paths.is_ok()) {
    std::erase_if(*paths, sources::is_sidecar_path);
    std::erase_if(*paths, sources::is_split_keys_path);
  }
  if (!paths.is_ok()) {
    table.fault_at(node, "files", paths.status().message());
  } else if (paths->empty()) {
    table.fault_at(node, "files", fmt::format("{} matches no file", shown(node.text)));
  } else {
    matched.push_back({.pattern = node.text, .paths = *std::move(paths)});
  }
}

void read_files(TableReader& table, const SourceContext& context, SourceConfig& source) {
  table.need("files");
  const std::optional<SourceFormat> given = read_given_format(table);
  const TomlNode* node = table.find("files");
  if (node == nullptr) return;
  std::vector<MatchedFiles> matched;
  if (node->is(TomlType::kText)) {
    source.files.push_back(node->text);
    expand_pattern(table, *node, context, matched);
  } else if (node->items.empty()) {
    table.fault("files", "an empty list; a source has files");
  }
  for (const TomlNode& item : node->items) {
    source.files.push_back(item.text);
    expand_pattern(table, item, context, matched);
  }
  const auto format = common_format(given, matched);
  if (!format.is_ok()) return table.fault("files", format.status().message());
  source.format = *format;
  auto files = files_to_read(*format, matched);
  if (!files.is_ok()) return table.fault("files", files.status().message());
  source.paths = *std::move(files);
}

// --- fields ------------------------------------------------------------------------------------

void read_field(TableReader& fields, std::string_view key, std::string& name) {
  fields.text(key, name);
  if (fields.has(key) && name.empty()) fields.fault(key, "an empty name");
}

/// What is wrong with the fields that were named together, or nothing.
std::string fault_of_fields(const TableReader& fields) {
  const bool text = fields.has("text");
  const bool pair = fields.has("prompt") || fields.has("answer");
  const bool tokens = fields.has("tokens");
  if (text + pair + tokens != 1) {
    return "either { text }, or { prompt, answer }, or { tokens, loss_mask }, and image beside "
           "texts";
  }
  if (pair && !(fields.has("prompt") && fields.has("answer"))) {
    return "prompt and answer go together";
  }
  if (fields.has("image") && tokens) return "image goes with text, or with prompt and answer";
  if (fields.has("loss_mask") && !tokens) {
    return "loss_mask goes with tokens; loss_on = \"answer\" masks prompts";
  }
  return {};
}

sources::RecordFields read_named_fields(TableReader& fields) {
  sources::TextField text;
  sources::AnswerFields pair;
  sources::TokenFields tokens;
  read_field(fields, "text", text.text);
  read_field(fields, "prompt", pair.prompt);
  read_field(fields, "answer", pair.answer);
  read_field(fields, "tokens", tokens.tokens);
  read_field(fields, "loss_mask", tokens.loss_mask);
  if (fields.has("tokens")) return tokens;
  if (fields.has("answer")) return pair;
  return text;
}

sources::RecordFields default_fields(SourceFormat format) {
  return sources::TextField{format == SourceFormat::kTar ? "txt" : "text"};
}

void read_fields(TableReader& table, SourceConfig& source) {
  if (has_fields(source.format)) source.fields = default_fields(source.format);
  std::optional<TableReader> fields = table.table("fields");
  if (!fields) return;
  source.fields = read_named_fields(*fields);
  read_field(*fields, "image", source.picture);
  if (!has_fields(source.format)) {
    const bool is_text = source.format == SourceFormat::kText;
    return table.fault("fields", fmt::format("{} has no fields; leave them out",
                                             is_text ? "a file of text" : "a Megatron data set"));
  }
  if (fields->has("image") && !holds_pictures(source.format)) {
    fields->fault(
        "image", fmt::format("{} holds no pictures; tar and parquet do", to_string(source.format)));
  }
  const std::string wrong = fault_of_fields(*fields);
  if (!wrong.empty()) table.fault("fields", wrong);
}

/// What the fields are there for.
LossOn natural_loss(const std::optional<sources::RecordFields>& fields) {
  if (!fields) return LossOn::kAll;
  if (std::holds_alternative<sources::AnswerFields>(*fields)) return LossOn::kAnswer;
  const auto* tokens = std::get_if<sources::TokenFields>(&*fields);
  return tokens != nullptr && !tokens->loss_mask.empty() ? LossOn::kMask : LossOn::kAll;
}

bool has_text(const SourceConfig& source) {
  return source.format != SourceFormat::kMegatron &&
         !(source.fields && std::holds_alternative<sources::TokenFields>(*source.fields));
}

void read_loss(TableReader& table, const SourceContext& context, SourceConfig& source) {
  const LossOn natural = natural_loss(source.fields);
  source.loss_on = natural;
  table.one_of("loss_on", loss_names(), source.loss_on);
  if (source.loss_on == LossOn::kAll || source.loss_on == natural) return;
  if (source.loss_on == LossOn::kMask && context.gives_masks && has_text(source)) return;
  table.fault("loss_on", source.loss_on == LossOn::kAnswer
                             ? "\"answer\" needs fields = { prompt = ..., answer = ... }"
                             : "\"mask\" needs fields = { tokens = ..., loss_mask = ... }");
}

// --- shares and weights ------------------------------------------------------------------------

void read_split(TableReader& table, SourceConfig& source) {
  const TomlNode* node = table.find("split");
  if (node == nullptr) return;
  source.split.clear();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const std::string& name = node->keys[i];
    const TomlNode& share = node->items[i];
    const Status fit = store::validate_name("split", name);
    if (!fit.is_ok()) {
      table.fault_at(share, "split", fit.message());
    } else if (!share.is(TomlType::kWhole)) {
      table.fault_at(share, "split",
                     fmt::format("a whole number is expected as the share of {}, not {}", name,
                                 to_string(share.type)));
    } else if (share.whole < 0 || static_cast<std::uint64_t>(share.whole) > kMaxShare) {
      table.fault_at(share, "split",
                     fmt::format("{} = {} is not within 0 to {}", name, share.whole, kMaxShare));
    } else {
      source.split[name] = static_cast<std::uint64_t>(share.whole);
      sum += source.split[name];
    }
  }
  if (sum == 0) table.fault("split", "no split has a share above 0");
}

void read_split_by(TableReader& table, SourceConfig& source) {
  const TomlNode* node = table.find("split_by");
  if (node == nullptr) return;
  if (!node->is(TomlType::kTable)) {
    if (node->text == "field") return table.fault("split_by", "which one? { field = \"author\" }");
    return table.one_of("split_by", split_rule_names(), source.split_by.rule);
  }
  TableReader by = *table.table("split_by");
  by.need("field");
  read_field(by, "field", source.split_by.field);
  source.split_by.rule = SplitRule::kField;
  if (has_fields(source.format)) return;
  table.fault("split_by", fmt::format("{} has no fields; \"content\" does not need one",
                                      to_string(source.format)));
}

Weight read_weight(TableReader& table, const TomlNode& node, std::string_view key) {
  const double number = node.is(TomlType::kWhole) ? static_cast<double>(node.whole) : node.fraction;
  const Result<Weight> weight = planning::weight_of_number(number);
  if (weight.is_ok()) return *weight;
  table.fault_at(node, key, weight.status().message());
  return Weight(0);
}

planning::WeightPoint read_point(TableReader& table) {
  planning::WeightPoint point;
  table.need("step");
  table.need("value");
  std::uint64_t step = 0;
  table.whole("step", {}, step);
  point.step = model::Step(step);
  if (const TomlNode* value = table.find("value")) {
    point.weight = read_weight(table, *value, "value");
  }
  table.one_of("ramp", planning::ramp_names(), point.ramp);
  return point;
}

void read_source_weight(TableReader& table, SourceConfig& source) {
  const TomlNode* node = table.find("weight");
  if (node == nullptr) return;
  if (!node->is(TomlType::kList)) {
    source.weight = Schedule(read_weight(table, *node, "weight"));
    return;
  }
  std::vector<planning::WeightPoint> points;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const TomlNode& item = node->items[i];
    if (!item.is(TomlType::kTable)) {
      table.fault_at(item, "weight",
                     fmt::format("{{ step, value, ramp }} is expected as an element, not {}",
                                 to_string(item.type)));
      continue;
    }
    const std::string at = fmt::format("{}.weight[{}]", table.instance(), i);
    table.notes().lines.emplace(at, item.line);
    TableReader point(item, "source.weight", at, table.notes());
    points.push_back(read_point(point));
  }
  Result<Schedule> schedule = Schedule::create(std::move(points));
  if (schedule.is_ok()) {
    source.weight = *std::move(schedule);
  } else {
    table.fault("weight", schedule.status().message());
  }
}

void read_passes(TableReader& table, SourceConfig& source) {
  table.one_of("order", planning::order_names(), source.order);
  table.one_of("exhausted", planning::exhausted_names(), source.exhausted);
  table.whole("epochs", {1, UINT32_MAX}, source.epochs);
  if (source.epochs != 0 && source.exhausted != planning::Exhausted::kRepeat) {
    table.fault("epochs", "passes need exhausted = \"repeat\"");
  }
}

}  // namespace

SourceConfig read_source(TableReader& table, const SourceContext& context) {
  SourceConfig source;
  read_source_name(table, source);
  read_files(table, context, source);
  read_fields(table, source);
  read_loss(table, context, source);
  read_split(table, source);
  read_split_by(table, source);
  read_source_weight(table, source);
  read_passes(table, source);
  return source;
}

Result<planning::Schedule> parse_weight(std::string_view text) {
  BL_ASSIGN_OR_RETURN(const TomlNode root, parse_toml(fmt::format("weight = {}", text), "weight"));
  ReadNotes notes;
  SourceConfig source;
  TableReader table(root, "source", "source", notes);
  read_source_weight(table, source);
  BL_RETURN_IF_ERROR(notes.faults.to_status("weight"));
  return source.weight;
}

}  // namespace batchloom::control
