// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/sample_graph_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/toml_text.h"

namespace batchloom::planning {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kAxisNames = {"pp"sv, "dp"sv, "cp"sv, "tp"sv};

using Names = std::span<const std::string_view>;

struct TomlFault {
  std::uint32_t line = 0;
  std::string text;
};
using TomlFaults = std::vector<TomlFault>;

std::uint32_t line_of(const toml::node& node) {
  return node.source().begin.line;
}

std::string_view type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "a text";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a fraction";
    case toml::node_type::boolean: return "true or false";
    default: return "a date or time";
  }
}

/// A table, read key by key. What is wrong is noted, and reading goes on.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, TomlFaults& faults)
      : table_(table), where_(std::move(where)), faults_(faults) {}

  std::uint32_t line() const { return line_of(table_); }
  /// Of the key's value, or of the table without it.
  std::uint32_t line(std::string_view key) const {
    const toml::node* node = table_.get(key);
    return node != nullptr ? line_of(*node) : line();
  }

  const toml::node* find(std::string_view key) {
    known_.insert(key);
    return table_.get(key);
  }
  const toml::node* need(std::string_view key, std::string_view expected) {
    const toml::node* node = find(key);
    if (node == nullptr) {
      faults_.push_back({line(), fmt::format("{} lacks {}: {}", where_, key, expected)});
    }
    return node;
  }

  void fault(const toml::node& node, std::string_view key, std::string_view reason) {
    faults_.push_back({line_of(node), fmt::format("{} in {}: {}", key, where_, reason)});
  }

  std::optional<std::uint64_t> whole(const toml::node* node, std::string_view key,
                                     std::uint64_t least, std::uint64_t most) {
    if (node == nullptr) return std::nullopt;
    const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
    if (!value) {
      fault(*node, key, fmt::format("a whole number is expected, not {}", type_of(*node)));
      return std::nullopt;
    }
    if (*value < 0 || static_cast<std::uint64_t>(*value) < least ||
        static_cast<std::uint64_t>(*value) > most) {
      fault(*node, key, fmt::format("{} is not within {} to {}", *value, least, most));
      return std::nullopt;
    }
    return static_cast<std::uint64_t>(*value);
  }

  std::optional<std::string> text(const toml::node* node, std::string_view key) {
    if (node == nullptr) return std::nullopt;
    std::optional<std::string> value = node->value_exact<std::string>();
    if (!value) fault(*node, key, fmt::format("a text is expected, not {}", type_of(*node)));
    return value;
  }

  std::optional<bool> truth(const toml::node* node, std::string_view key) {
    if (node == nullptr) return std::nullopt;
    const std::optional<bool> value = node->value_exact<bool>();
    if (!value) fault(*node, key, fmt::format("true or false is expected, not {}", type_of(*node)));
    return value;
  }

  /// The place of a name in `names`, as a value of the enumeration.
  template <class Enum>
  std::optional<Enum> one_of(const toml::node* node, std::string_view key, Names names) {
    const std::optional<std::string> name = text(node, key);
    if (!name) return std::nullopt;
    const auto found = std::ranges::find(names, *name);
    if (found == names.end()) {
      fault(*node, key, fmt::format("'{}' is unknown; known: {}", *name, fmt::join(names, ", ")));
      return std::nullopt;
    }
    return static_cast<Enum>(found - names.begin());
  }

  /// The tables of a [[list]], or of nothing.
  std::vector<const toml::table*> tables(std::string_view key) {
    std::vector<const toml::table*> result;
    const toml::node* node = find(key);
    if (node == nullptr) return result;
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      fault(*node, key, fmt::format("[[{}]] is expected, not {}", key, type_of(*node)));
      return result;
    }
    for (const toml::node& element : *list) {
      if (element.is_table()) {
        result.push_back(element.as_table());
      } else {
        fault(element, key, fmt::format("a table is expected, not {}", type_of(element)));
      }
    }
    return result;
  }

  /// To be called last: whatever nobody asked for.
  void refuse_the_rest() {
    for (const auto& [key, node] : table_) {
      if (known_.contains(key.str())) continue;
      fault(node, key.str(), fmt::format("unknown key; known: {}", fmt::join(known_, ", ")));
    }
  }

 private:
  const toml::table& table_;
  const std::string where_;
  TomlFaults& faults_;
  std::set<std::string_view> known_;
};

/// Where things of a graph were written, for faults that are found later.
struct GraphLines {
  std::uint32_t step = 0;
  std::vector<std::uint32_t> sources;
  std::vector<std::map<GraphCall, std::uint32_t>> selections;

  std::uint32_t of(const GraphFault& fault) const {
    if (fault.selection) return selections[*fault.selection].at(fault.call);
    if (fault.source) return sources[*fault.source];
    return fault.call == GraphCall::kMix ? step : 1;
  }
};

class GraphReader {
 public:
  GraphReader(const toml::table& root, std::span<const CostModel> models)
      : root_(root, "the file", faults_), models_(models) {}

  Result<GraphSpec> read() {
    read_mix();
    for (const toml::table* table : root_.tables("select")) read_selection(*table);
    root_.refuse_the_rest();
    if (faults_.empty()) {
      for (const GraphFault& fault : find_faults(graph_)) {
        faults_.push_back(
            {lines_.of(fault), fmt::format("{}: {}", call_of(graph_, fault), fault.reason)});
      }
    }
    if (faults_.empty()) return std::move(graph_);
    std::ranges::stable_sort(faults_, {}, &TomlFault::line);
    std::vector<std::string> texts;
    for (const TomlFault& fault : faults_) {
      texts.push_back(fmt::format("line {}: {}", fault.line, fault.text));
    }
    return Status::invalid(fmt::format("sample graph: {}", fmt::join(texts, "; ")));
  }

 private:
  void read_mix() {
    const toml::node* seed = root_.find("seed");
    const toml::node* step = root_.find("step");
    const std::vector<const toml::table*> sources = root_.tables("source");
    if (seed == nullptr && step == nullptr && sources.empty()) return;
    MixSpec& mix = graph_.mix.emplace();
    mix.seed = root_.whole(seed, "seed", 0, INT64_MAX).value_or(0);
    if (root_.need("step", "[step] with tokens or samples, and max_sample_tokens") != nullptr) {
      if (const toml::table* table = step->as_table()) {
        read_step(*table, mix);
      } else {
        root_.fault(*step, "step", fmt::format("[step] is expected, not {}", type_of(*step)));
      }
    }
    for (const toml::table* table : sources) read_source(*table, mix);
  }

  void read_step(const toml::table& table, MixSpec& mix) {
    TableReader reader(table, "[step]", faults_);
    lines_.step = reader.line();
    const toml::node* tokens = reader.find("tokens");
    const toml::node* samples = reader.find("samples");
    if ((tokens == nullptr) == (samples == nullptr)) {
      faults_.push_back({reader.line(), "[step] has either tokens or samples"});
    }
    mix.unit = samples != nullptr ? StepUnit::kSamples : StepUnit::kTokens;
    mix.units_per_step = reader
                             .whole(samples != nullptr ? samples : tokens,
                                    samples != nullptr ? "samples" : "tokens", 1, kMaxStepUnits)
                             .value_or(1);
    const toml::node* most = reader.need("max_sample_tokens", "where records are cut");
    mix.max_sample_tokens = static_cast<std::uint32_t>(
        reader.whole(most, "max_sample_tokens", 1, kMaxSampleTokens).value_or(1));
    reader.refuse_the_rest();
  }

  void read_source(const toml::table& table, MixSpec& mix) {
    TableReader reader(table, "[[source]]", faults_);
    lines_.sources.push_back(reader.line());
    MixSource& source = mix.sources.emplace_back();
    source.name = reader.text(reader.need("name", "a text"), "name").value_or("");
    if (const toml::node* weight = reader.need("weight", "a number, or a list of points")) {
      source.weight = read_schedule(reader, *weight);
    }
    source.order =
        reader.one_of<Order>(reader.find("order"), "order", order_names()).value_or(Order::kRandom);
    source.exhausted =
        reader.one_of<Exhausted>(reader.find("exhausted"), "exhausted", exhausted_names())
            .value_or(Exhausted::kStop);
    source.epochs = static_cast<std::uint32_t>(
        reader.whole(reader.find("epochs"), "epochs", 0, UINT32_MAX).value_or(0));
    reader.refuse_the_rest();
  }

  Schedule read_schedule(TableReader& reader, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return Schedule(read_weight(reader, node, "weight"));
    std::vector<WeightPoint> points;
    for (const toml::node& element : *list) {
      const toml::table* table = element.as_table();
      if (table == nullptr) {
        reader.fault(element, "weight",
                     fmt::format("{{ step, value, ramp }} is expected, not {}", type_of(element)));
        continue;
      }
      TableReader point(*table, "a point of weight", faults_);
      WeightPoint& read = points.emplace_back();
      read.step = model::Step(
          point.whole(point.need("step", "a whole number"), "step", 0, INT64_MAX).value_or(0));
      if (const toml::node* value = point.need("value", "a number")) {
        read.weight = read_weight(point, *value, "value");
      }
      read.ramp =
          point.one_of<Ramp>(point.find("ramp"), "ramp", ramp_names()).value_or(Ramp::kNone);
      point.refuse_the_rest();
    }
    Result<Schedule> schedule = Schedule::create(std::move(points));
    if (schedule.is_ok()) return std::move(schedule).value();
    reader.fault(node, "weight", schedule.status().message());
    return Schedule();
  }

  static Weight read_weight(TableReader& reader, const toml::node& node, std::string_view key) {
    const std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value) {
      reader.fault(node, key, fmt::format("a number is expected, not {}", type_of(node)));
      return Weight(0);
    }
    const Result<Weight> weight = weight_of_number(*value);
    if (weight.is_ok()) return *weight;
    reader.fault(node, key, weight.status().message());
    return Weight(0);
  }

  void read_selection(const toml::table& table) {
    TableReader reader(table, "[[select]]", faults_);
    SelectionSpec& selection = graph_.selections.emplace_back();
    const toml::node* modality =
        reader.need("modality", fmt::format("{}", fmt::join(modality_names(), ", ")));
    selection.modality =
        reader.one_of<Modality>(modality, "modality", modality_names()).value_or(Modality::kText);
    selection.distribute =
        reader.one_of<Spread>(reader.find("distribute"), "distribute", spread_names());
    selection.balance = reader.one_of<Balance>(reader.find("balance"), "balance", balance_names());
    read_cost(reader, selection);
    read_token_options(reader, selection);
    read_broadcast(reader, selection);
    lines_.selections.push_back({{GraphCall::kSelect, reader.line("modality")},
                                 {GraphCall::kDistribute, reader.line("distribute")},
                                 {GraphCall::kCost, reader.line("cost")},
                                 {GraphCall::kBalance, reader.line("balance")},
                                 {GraphCall::kBroadcastAt, reader.line("broadcast_at")}});
    reader.refuse_the_rest();
  }

  void read_cost(TableReader& reader, SelectionSpec& selection) {
    const toml::node* node = reader.find("cost");
    const std::optional<std::string> name = reader.text(node, "cost");
    if (!name) return;
    const auto found = std::ranges::find(models_, *name, &CostModel::name);
    if (found != models_.end()) {
      selection.cost = *found;
      return;
    }
    Result<CostModel> builtin = builtin_cost_model(*name);
    if (builtin.is_ok()) {
      selection.cost = std::move(builtin).value();
      return;
    }
    std::vector<std::string_view> known;
    for (const CostModel& model : models_) known.push_back(model.name);
    const auto builtins = builtin_cost_model_names();
    known.insert(known.end(), builtins.begin(), builtins.end());
    reader.fault(*node, "cost",
                 fmt::format("'{}' is unknown; known: {}", *name, fmt::join(known, ", ")));
  }

  static void read_token_options(TableReader& reader, SelectionSpec& selection) {
    TokenOptions& options = selection.options;
    const auto tokens = [&](std::string_view key, std::uint32_t& value) {
      const auto read = reader.whole(reader.find(key), key, 1, UINT32_MAX);
      if (read) value = static_cast<std::uint32_t>(*read);
    };
    tokens("capacity", options.capacity_tokens);
    tokens("min_share", options.min_share_tokens);
    options.offload = reader.truth(reader.find("offload"), "offload").value_or(options.offload);
  }

  static void read_broadcast(TableReader& reader, SelectionSpec& selection) {
    const toml::node* node = reader.find("broadcast_at");
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      reader.fault(*node, "broadcast_at",
                   fmt::format("a list of axes is expected, not {}", type_of(*node)));
      return;
    }
    for (const toml::node& element : *list) {
      const auto axis = reader.one_of<model::Axis>(&element, "broadcast_at", kAxisNames);
      if (axis) selection.broadcast_at.push_back(*axis);
    }
  }

  TomlFaults faults_;
  TableReader root_;
  const std::span<const CostModel> models_;
  GraphSpec graph_;
  GraphLines lines_;
};

std::string toml_of(const MixSpec& mix) {
  std::string text = fmt::format("seed = {}\n\n[step]\n{} = {}\nmax_sample_tokens = {}\n", mix.seed,
                                 mix.unit == StepUnit::kTokens ? "tokens" : "samples",
                                 mix.units_per_step, mix.max_sample_tokens);
  for (const MixSource& source : mix.sources) {
    text +=
        fmt::format("\n[[source]]\nname = {}\nweight = {}\norder = \"{}\"\nexhausted = \"{}\"\n",
                    toml_quoted(source.name), toml_weight(source.weight),
                    order_names()[static_cast<std::size_t>(source.order)],
                    exhausted_names()[static_cast<std::size_t>(source.exhausted)]);
    if (source.epochs != 0) text += fmt::format("epochs = {}\n", source.epochs);
  }
  return text;
}

std::string toml_of(const SelectionSpec& selection) {
  std::string text = fmt::format("[[select]]\nmodality = \"{}\"\n", to_string(selection.modality));
  if (selection.distribute) {
    text += fmt::format("distribute = \"{}\"\n", to_string(*selection.distribute));
  }
  if (selection.cost) text += fmt::format("cost = {}\n", toml_quoted(selection.cost->name));
  if (selection.balance) text += fmt::format("balance = \"{}\"\n", to_string(*selection.balance));
  const TokenOptions plain;
  const TokenOptions& options = selection.options;
  if (options.capacity_tokens != plain.capacity_tokens) {
    text += fmt::format("capacity = {}\n", options.capacity_tokens);
  }
  if (options.min_share_tokens != plain.min_share_tokens) {
    text += fmt::format("min_share = {}\n", options.min_share_tokens);
  }
  if (options.offload != plain.offload) text += fmt::format("offload = {}\n", options.offload);
  if (!selection.broadcast_at.empty()) {
    std::vector<std::string> axes;
    for (const model::Axis axis : selection.broadcast_at)
      axes.push_back(toml_quoted(to_string(axis)));
    text += fmt::format("broadcast_at = [{}]\n", fmt::join(axes, ", "));
  }
  return text;
}

}  // namespace

Result<GraphSpec> parse_sample_graph(std::string_view text, std::span<const CostModel> models) {
  try {
    const toml::table root = toml::parse(text);
    return GraphReader(root, models).read();
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return Status::invalid(fmt::format("sample graph: line {}, column {}: {}", at.line, at.column,
                                       error.description()));
  }
}

Result<std::string> to_toml(const GraphSpec& graph) {
  if (graph.mix && graph.mix->seed > INT64_MAX) {
    return Status::invalid(
        fmt::format("a seed of {} has no number in TOML; one below 2^63 has", graph.mix->seed));
  }
  std::string text = graph.mix ? toml_of(*graph.mix) : "";
  for (const SelectionSpec& selection : graph.selections) {
    text += fmt::format("{}{}", text.empty() ? "" : "\n", toml_of(selection));
  }
  return text;
}

}  // namespace batchloom::planning
