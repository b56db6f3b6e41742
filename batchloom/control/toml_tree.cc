// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/toml_tree.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

namespace batchloom::control {
namespace {

TomlNode node_of(const toml::node& from);

TomlNode table_of(const toml::table& from) {
  TomlNode table{.type = TomlType::kTable};
  for (const auto& [key, value] : from) {
    table.keys.emplace_back(key.str());
    table.items.push_back(node_of(value));
  }
  return table;
}

TomlNode list_of(const toml::array& from) {
  TomlNode list{.type = TomlType::kList};
  for (const toml::node& element : from) list.items.push_back(node_of(element));
  return list;
}

TomlNode value_of(const toml::node& from) {
  if (const auto* table = from.as_table()) return table_of(*table);
  if (const auto* list = from.as_array()) return list_of(*list);
  TomlNode value{.type = TomlType::kTime};
  if (const auto* text = from.as_string()) {
    value.type = TomlType::kText;
    value.text = text->get();
  } else if (const auto* whole = from.as_integer()) {
    value.type = TomlType::kWhole;
    value.whole = whole->get();
  } else if (const auto* fraction = from.as_floating_point()) {
    value.type = TomlType::kFraction;
    value.fraction = fraction->get();
  } else if (const auto* truth = from.as_boolean()) {
    value.type = TomlType::kTruth;
    value.whole = truth->get() ? 1 : 0;
  }
  return value;
}

TomlNode node_of(const toml::node& from) {
  TomlNode node = value_of(from);
  node.line = from.source().begin.line;
  return node;
}

}  // namespace

std::string_view to_string(TomlType type) {
  switch (type) {
    case TomlType::kTable: return "a table";
    case TomlType::kList: return "a list";
    case TomlType::kText: return "a text";
    case TomlType::kWhole: return "a whole number";
    case TomlType::kFraction: return "a fraction";
    case TomlType::kTruth: return "true or false";
    case TomlType::kTime: return "a date or time";
  }
  return "unknown";
}

const TomlNode* TomlNode::find(std::string_view key) const {
  if (!is(TomlType::kTable)) return nullptr;
  const auto found = std::ranges::lower_bound(keys, key);
  if (found == keys.end() || *found != key) return nullptr;
  return &items[static_cast<std::size_t>(found - keys.begin())];
}

Result<TomlNode> parse_toml(std::string_view text, std::string_view name) {
  try {
    TomlNode root = table_of(toml::parse(text));
    return root;
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return Status::invalid(
        fmt::format("{}: line {}, column {}: {}", name, at.line, at.column, error.description()));
  }
}

}  // namespace batchloom::control
