// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/table_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/quantity.h"
#include "batchloom/base/spelling.h"

namespace batchloom::control {
namespace {

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

/// "a whole number or a text".
std::string types_text(TomlTypes types) {
  constexpr TomlType kAll[] = {TomlType::kTable, TomlType::kList,     TomlType::kText,
                               TomlType::kWhole, TomlType::kFraction, TomlType::kTruth};
  std::string text;
  for (const TomlType type : kAll) {
    if (!types.has(type)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " or ", to_string(type));
  }
  return text;
}

}  // namespace

TableReader::TableReader(const TomlNode& table, std::string path, std::string instance,
                         ReadNotes& notes)
    : table_(table), path_(std::move(path)), instance_(std::move(instance)), notes_(notes) {
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const std::string& name = table.keys[i];
    if (find_pipeline_key(path_of(name)) != nullptr && name.find('.') == std::string::npos) {
      notes_.lines.emplace(join_path(instance_, name), table.items[i].line);
      continue;
    }
    notes_.faults.add(
        table.items[i].line,
        fmt::format("{} is no key{}; {}", shown(name),
                    path_.empty() ? "" : fmt::format(" of {}", path_), spelling_hint(path_, name)));
  }
}

std::string TableReader::path_of(std::string_view key) const {
  return join_path(path_, key);
}

void TableReader::need(std::string_view key) {
  if (has(key)) return;
  const PipelineKey* known = find_pipeline_key(path_of(key));
  BL_CHECK(known != nullptr, path_of(key));
  notes_.faults.add(line_of(notes_.lines, instance_),
                    fmt::format("{} is missing: {}", known->path, known->what));
}

const TomlNode* TableReader::find(std::string_view key) {
  const PipelineKey* known = find_pipeline_key(path_of(key));
  BL_CHECK(known != nullptr, path_of(key));
  const TomlNode* node = table_.find(key);
  if (node == nullptr) return nullptr;
  if (!known->types.has(node->type)) {
    fault_at(*node, key,
             fmt::format("{} is expected ({}), not {}", types_text(known->types), known->what,
                         to_string(node->type)));
    return nullptr;
  }
  if (!known->built) {
    fault_at(*node, key, "not built yet");
    return nullptr;
  }
  return node;
}

std::optional<std::uint64_t> TableReader::whole_of(const TomlNode& node, std::string_view key,
                                                   WholeRange range) {
  if (node.whole >= 0) {
    const auto number = static_cast<std::uint64_t>(node.whole);
    if (number >= range.least && number <= range.most) return number;
  }
  fault_at(node, key,
           fmt::format("{} is not within {} to {}", node.whole, range.least, range.most));
  return std::nullopt;
}

void TableReader::whole(std::string_view key, WholeRange range, std::uint64_t& value) {
  if (const TomlNode* node = find(key)) value = whole_of(*node, key, range).value_or(value);
}

void TableReader::whole(std::string_view key, WholeRange range, std::uint32_t& value) {
  BL_CHECK(range.most <= UINT32_MAX, path_of(key));
  std::uint64_t wide = value;
  whole(key, range, wide);
  value = static_cast<std::uint32_t>(wide);
}

void TableReader::text(std::string_view key, std::string& value) {
  if (const TomlNode* node = find(key)) value = node->text;
}

void TableReader::truth(std::string_view key, bool& value) {
  if (const TomlNode* node = find(key)) value = node->whole != 0;
}

void TableReader::bytes(std::string_view key, WholeRange range, std::uint64_t& value) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const auto bytes = parse_bytes(node->text);
  if (!bytes) {
    fault_at(
        *node, key,
        fmt::format("{} is no size; write \"512 MiB\", \"2 GiB\" or \"1 TiB\"", shown(node->text)));
  } else if (*bytes < range.least || *bytes > range.most) {
    fault_at(*node, key,
             fmt::format("{} is not within {} to {}", shown(node->text), bytes_text(range.least),
                         bytes_text(range.most)));
  } else {
    value = *bytes;
  }
}

void TableReader::whole_or(std::string_view key, WholeRange range, std::string_view none,
                           std::optional<std::uint64_t>& value) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->is(TomlType::kWhole)) {
    if (const auto number = whole_of(*node, key, range)) value = number;
  } else if (node->text == none) {
    value.reset();
  } else {
    fault_at(*node, key,
             fmt::format("{} is neither a whole number nor \"{}\"", shown(node->text), none));
  }
}

void TableReader::wholes(std::string_view key, WholeRange range, std::size_t most,
                         std::vector<std::uint32_t>& values) {
  BL_CHECK(range.most <= UINT32_MAX, path_of(key));
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->items.size() > most) {
    fault_at(*node, key, fmt::format("{} elements; at most {}", node->items.size(), most));
    return;
  }
  values.clear();
  for (const TomlNode& item : node->items) {
    if (!item.is(TomlType::kWhole)) {
      fault_at(
          item, key,
          fmt::format("a whole number is expected as an element, not {}", to_string(item.type)));
    } else if (const auto number = whole_of(item, key, range)) {
      values.push_back(static_cast<std::uint32_t>(*number));
    }
  }
}

std::optional<std::size_t> TableReader::place_of(std::string_view key,
                                                 std::span<const std::string_view> names) {
  const TomlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto found = std::ranges::find(names, std::string_view(node->text));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> known(names.begin(), names.end());
  const auto near = nearest_spelling(node->text, known);
  fault_at(*node, key,
           fmt::format("{} is unknown; {}known: {}", shown(node->text),
                       near ? fmt::format("did you mean \"{}\"? ", *near) : std::string(),
                       fmt::join(names, ", ")));
  return std::nullopt;
}

std::optional<TableReader> TableReader::table(std::string_view key) {
  const TomlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  return TableReader(*node, path_of(key), join_path(instance_, key), notes_);
}

void TableReader::fault(std::string_view key, std::string_view reason) {
  notes_.faults.add(line_of(notes_.lines, join_path(instance_, key)),
                    fmt::format("{}: {}", path_of(key), reason));
}

void TableReader::fault_at(const TomlNode& node, std::string_view key, std::string_view reason) {
  notes_.faults.add(node.line, fmt::format("{}: {}", path_of(key), reason));
}

}  // namespace batchloom::control
