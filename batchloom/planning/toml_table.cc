// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <set>
#include <utility>

namespace batchloom::planning {

struct TomlTable::Impl {
  std::string name;
  std::shared_ptr<const toml::table> document;  ///< Which `table` is a part of.
  const toml::table* table = nullptr;
  std::set<std::string, std::less<>> asked = {};

  const toml::node* find(std::string_view key) {
    asked.emplace(key);
    return table->get(key);
  }
  std::shared_ptr<Impl> part(const toml::table& of) const {
    return std::make_shared<Impl>(Impl{.name = name, .document = document, .table = &of});
  }
  Status wrong(const toml::node& at, std::string_view why) const {
    return Status::invalid(fmt::format("{}: line {}: {}", name, at.source().begin.line, why));
  }
};

namespace {

Status missing(const TomlTable& table, std::string_view key) {
  return table.wrong(key, "is missing");
}

}  // namespace

Result<TomlTable> TomlTable::parse(std::string_view text, std::string_view name) {
  try {
    auto document = std::make_shared<const toml::table>(toml::parse(text));
    const toml::table* const table = document.get();
    return TomlTable(std::make_shared<Impl>(
        Impl{.name = std::string(name), .document = std::move(document), .table = table}));
  } catch (const toml::parse_error& error) {
    return Status::invalid(
        fmt::format("{}: line {}: {}", name, error.source().begin.line, error.description()));
  }
}

bool TomlTable::has(std::string_view key) const {
  return impl_->table->contains(key);
}

Result<std::uint64_t> TomlTable::number(std::string_view key, TomlRange range,
                                        std::optional<std::uint64_t> fallback) const {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return fallback ? Result(*fallback) : missing(*this, key);
  const auto value = node->value_exact<std::int64_t>();
  if (value && *value >= 0) {
    const auto number = static_cast<std::uint64_t>(*value);
    if (number >= range.least && number <= range.most) return number;
  }
  return wrong(key, fmt::format("must be a whole number from {} to {}", range.least, range.most));
}

Result<std::string> TomlTable::text(std::string_view key,
                                    std::optional<std::string> fallback) const {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return fallback ? Result(*std::move(fallback)) : missing(*this, key);
  auto value = node->value_exact<std::string>();
  if (!value) return wrong(key, "must be text in quotes");
  return *std::move(value);
}

Result<bool> TomlTable::flag(std::string_view key, std::optional<bool> fallback) const {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return fallback ? Result(*fallback) : missing(*this, key);
  const auto value = node->value_exact<bool>();
  if (!value) return wrong(key, "must be true or false");
  return *value;
}

Result<std::vector<std::vector<std::uint64_t>>> TomlTable::rows(std::string_view key,
                                                                std::size_t columns) const {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return missing(*this, key);
  const auto unlike = [&](const toml::node& at) {
    return impl_->wrong(
        at,
        fmt::format("'{}' must be a list of lists of {} whole numbers from 0 on", key, columns));
  };
  const toml::array* const list = node->as_array();
  if (list == nullptr) return unlike(*node);
  std::vector<std::vector<std::uint64_t>> rows;
  for (const toml::node& element : *list) {
    const toml::array* const row = element.as_array();
    if (row == nullptr || row->size() != columns) return unlike(element);
    std::vector<std::uint64_t>& numbers = rows.emplace_back();
    for (const toml::node& field : *row) {
      const auto value = field.value_exact<std::int64_t>();
      if (!value || *value < 0) return unlike(field);
      numbers.push_back(static_cast<std::uint64_t>(*value));
    }
  }
  return rows;
}

Result<std::optional<TomlTable>> TomlTable::table(std::string_view key) const {
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return std::optional<TomlTable>();
  if (node->as_table() == nullptr) return wrong(key, "must be a table");
  return std::optional(TomlTable(impl_->part(*node->as_table())));
}

Result<std::vector<TomlTable>> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> tables;
  const toml::node* const node = impl_->find(key);
  if (node == nullptr) return tables;
  const toml::array* const list = node->as_array();
  if (list == nullptr) return wrong(key, "must be a list of tables");
  for (const toml::node& element : *list) {
    if (element.as_table() == nullptr) return wrong(key, "must be a list of tables");
    tables.push_back(TomlTable(impl_->part(*element.as_table())));
  }
  return tables;
}

Status TomlTable::finish() const {
  for (const auto& [key, node] : *impl_->table) {
    if (impl_->asked.contains(key.str())) continue;
    return impl_->wrong(node, fmt::format("nothing is called '{}' here; there may be {}", key.str(),
                                          fmt::join(impl_->asked, ", ")));
  }
  return Status::ok();
}

Status TomlTable::wrong(std::string_view key, std::string_view why) const {
  const toml::node* const node = impl_->table->get(key);
  return impl_->wrong(node != nullptr ? *node : *impl_->table, fmt::format("'{}' {}", key, why));
}

}  // namespace batchloom::planning
