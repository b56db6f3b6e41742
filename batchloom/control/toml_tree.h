// SPDX-License-Identifier: Apache-2.0
// A TOML document as a plain value in which everything knows its line. Only toml_tree.cc knows by
// which library it is parsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::control {

enum class TomlType : std::uint8_t { kTable, kList, kText, kWhole, kFraction, kTruth, kTime };

/// As messages call it, with its article: "a table", "a whole number".
std::string_view to_string(TomlType type);

struct TomlNode {
  TomlType type = TomlType::kTable;
  std::uint32_t line = 1;              ///< Where it begins.
  std::string text = {};               ///< kText.
  std::int64_t whole = 0;              ///< kWhole.
  double fraction = 0;                 ///< kFraction.
  std::vector<std::string> keys = {};  ///< kTable: of the items, ascending.
  std::vector<TomlNode> items = {};    ///< kTable, kList.

  bool is(TomlType other) const { return type == other; }
  /// The item of a table, or nullptr.
  const TomlNode* find(std::string_view key) const;
};

/// The document's own table. `invalid`, with `name` (the file's path), line and column, where
/// `text` is no TOML.
Result<TomlNode> parse_toml(std::string_view text, std::string_view name);

}  // namespace batchloom::control
