// SPDX-License-Identifier: Apache-2.0
// Settings in TOML, read key by key. Only toml_table.cc knows by which library they are parsed.
//
//   BL_ASSIGN_OR_RETURN(TomlTable table, TomlTable::parse(text, "cluster.toml"));
//   BL_ASSIGN_OR_RETURN(const auto n, table.number("capacity_tokens", {.least = 1}, 8192));
//   BL_RETURN_IF_ERROR(table.finish());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::planning {

/// What a number in a file may be.
struct TomlRange {
  std::uint64_t least = 0;
  std::uint64_t most = INT64_MAX;  ///< TOML has no larger ones.
};

/// A table of a document. A copy is the same table. One thread at a time.
///
/// Errors are `invalid` and name the document, the line, the key, and what was expected.
class TomlTable {
 public:
  /// The document's own table. `name` stands in messages: the file's path.
  static Result<TomlTable> parse(std::string_view text, std::string_view name);

  bool has(std::string_view key) const;

  // A key without `fallback` must be there.
  Result<std::uint64_t> number(std::string_view key, TomlRange range,
                               std::optional<std::uint64_t> fallback = {}) const;
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = {}) const;
  Result<bool> flag(std::string_view key, std::optional<bool> fallback = {}) const;
  /// Rows of `columns` numbers each: [[1, 2], [3, 4]].
  Result<std::vector<std::vector<std::uint64_t>>> rows(std::string_view key,
                                                       std::size_t columns) const;
  /// [key]; nullopt where it is missing.
  Result<std::optional<TomlTable>> table(std::string_view key) const;
  /// All of [[key]], in their order; none where it is missing.
  Result<std::vector<TomlTable>> tables(std::string_view key) const;

  /// Whether all keys were asked for: others are misspelt, or of another version.
  Status finish() const;

  /// An error about what stands under `key`, or about the whole table where that is missing.
  Status wrong(std::string_view key, std::string_view why) const;

 private:
  struct Impl;
  explicit TomlTable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace batchloom::planning
