// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/parquet_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <parquet/schema.h>

#include <algorithm>
#include <vector>

#include "batchloom/base/spelling.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kQuotedMax = 200;
constexpr std::size_t kNamesMax = 20;  ///< Of columns that a message tells.

using parquet::schema::GroupNode;
using parquet::schema::Node;
using parquet::schema::PrimitiveNode;
using Kind = parquet::LogicalType::Type;

Kind::type kind_of(const Node& node) {
  return node.logical_type() == nullptr ? Kind::NONE : node.logical_type()->type();
}

/// "INT64", "BYTE_ARRAY (String)", "a group of 2 fields".
std::string shown_type(const Node& node) {
  const Kind::type kind = kind_of(node);
  const std::string logical = kind == Kind::NONE || kind == Kind::UNDEFINED
                                  ? std::string()
                                  : fmt::format(" ({})", node.logical_type()->ToString());
  const std::string repeated = node.is_repeated() ? "repeated " : "";
  if (node.is_group()) {
    return fmt::format("{}a group of {} fields{}", repeated,
                       static_cast<const GroupNode&>(node).field_count(), logical);
  }
  const auto& leaf = static_cast<const PrimitiveNode&>(node);
  return fmt::format("{}{}{}", repeated, parquet::TypeToString(leaf.physical_type()), logical);
}

/// The fields of that name.
std::vector<const Node*> fields_named(const GroupNode& group, std::string_view name) {
  std::vector<const Node*> found;
  for (int i = 0; i < group.field_count(); ++i) {
    if (group.field(i)->name() == name) found.push_back(group.field(i).get());
  }
  return found;
}

/// By the whole name, else by one of its beginnings and the rest in the struct of that name.
std::vector<const Node*> find_nodes(const GroupNode& group, std::string_view name) {
  std::vector<const Node*> found = fields_named(group, name);
  for (std::size_t dot = name.find('.'); found.empty() && dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    for (const Node* field : fields_named(group, name.substr(0, dot))) {
      if (!field->is_group() || field->is_repeated()) continue;
      const auto below = find_nodes(static_cast<const GroupNode&>(*field), name.substr(dot + 1));
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  return found;
}

/// Definition levels of `node` and all above it.
std::int16_t level_of(const Node* node) {
  std::int16_t level = 0;
  for (; node != nullptr && node->parent() != nullptr; node = node->parent()) {
    if (!node->is_required()) ++level;
  }
  return level;
}

bool is_text(const Node& node) {
  if (node.is_group() || node.is_repeated()) return false;
  if (static_cast<const PrimitiveNode&>(node).physical_type() != parquet::Type::BYTE_ARRAY) {
    return false;
  }
  const Kind::type kind = kind_of(node);
  return kind == Kind::NONE || kind == Kind::UNDEFINED || kind == Kind::STRING ||
         kind == Kind::ENUM || kind == Kind::JSON;
}

bool is_number(const PrimitiveNode& node, ParquetContent content) {
  const parquet::Type::type type = node.physical_type();
  if (type == parquet::Type::BOOLEAN) return content == ParquetContent::kMarks;
  if (type != parquet::Type::INT32 && type != parquet::Type::INT64) return false;
  const Kind::type kind = kind_of(node);
  return kind == Kind::NONE || kind == Kind::UNDEFINED || kind == Kind::INT;
}

/// The elements of a list, list { repeated group { element } }, or nullptr.
const PrimitiveNode* element_of(const Node& node) {
  if (node.is_primitive() || node.is_repeated() || kind_of(node) != Kind::LIST) return nullptr;
  const auto& list = static_cast<const GroupNode&>(node);
  if (list.field_count() != 1 || !list.field(0)->is_group() || !list.field(0)->is_repeated()) {
    return nullptr;
  }
  const auto& repeated = static_cast<const GroupNode&>(*list.field(0));
  if (repeated.field_count() != 1) return nullptr;
  const Node& element = *repeated.field(0);
  const bool is_value = element.is_primitive() && !element.is_repeated();
  return is_value ? static_cast<const PrimitiveNode*>(&element) : nullptr;
}

bool is_unsigned_int(const Node& node) {
  return kind_of(node) == Kind::INT &&
         !static_cast<const parquet::IntLogicalType&>(*node.logical_type()).is_signed();
}

ParquetLeaf::Type type_of(const PrimitiveNode& node) {
  switch (node.physical_type()) {
    case parquet::Type::BOOLEAN: return ParquetLeaf::Type::kTruth;
    case parquet::Type::INT32: return ParquetLeaf::Type::kInt32;
    case parquet::Type::INT64: return ParquetLeaf::Type::kInt64;
    default: return ParquetLeaf::Type::kText;
  }
}

std::string missing(const GroupNode& root, const std::string& name) {
  std::vector<std::string> names;
  for (int i = 0; i < root.field_count(); ++i) names.push_back(printable(root.field(i)->name()));
  const auto near = nearest_spelling(name, names);
  const bool all = names.size() <= kNamesMax;
  if (!all) names.resize(kNamesMax);
  return fmt::format("it has no column '{}'; {}it has {}{}", name,
                     near ? fmt::format("did you mean '{}'? ", *near) : std::string(),
                     fmt::join(names, ", "), all ? "" : ", ...");
}

std::variant<ParquetLeaf, std::string> text_leaf(const parquet::SchemaDescriptor& schema,
                                                 const ParquetColumn& column, const Node& node) {
  if (!is_text(node)) {
    return fmt::format("column '{}' is {}; expected a text", column.name, shown_type(node));
  }
  const std::int16_t level = level_of(&node);
  return ParquetLeaf{.type = ParquetLeaf::Type::kText,
                     .index = schema.GetColumnIndex(static_cast<const PrimitiveNode&>(node)),
                     .present_level = level,
                     .element_level = level,
                     .max_level = level,
                     .is_unsigned = false};
}

std::variant<ParquetLeaf, std::string> list_leaf(const parquet::SchemaDescriptor& schema,
                                                 const ParquetColumn& column, const Node& node) {
  const PrimitiveNode* element = element_of(node);
  if (element == nullptr || !is_number(*element, column.content)) {
    return fmt::format("column '{}' is {}{}; expected a list of whole numbers", column.name,
                       shown_type(node),
                       element == nullptr ? std::string() : " of " + shown_type(*element));
  }
  const Node* repeated = element->parent();
  return ParquetLeaf{.type = type_of(*element),
                     .index = schema.GetColumnIndex(*element),
                     .present_level = level_of(repeated->parent()),
                     .element_level = level_of(repeated),
                     .max_level = level_of(element),
                     .is_unsigned = is_unsigned_int(*element)};
}

}  // namespace

std::variant<ParquetLeaf, std::string> parquet_leaf(const parquet::SchemaDescriptor& schema,
                                                    const ParquetColumn& column) {
  const std::vector<const Node*> nodes = find_nodes(*schema.group_node(), column.name);
  if (nodes.empty()) return missing(*schema.group_node(), column.name);
  if (nodes.size() > 1) return fmt::format("{} columns are called '{}'", nodes.size(), column.name);
  return column.content == ParquetContent::kText ? text_leaf(schema, column, *nodes.front())
                                                 : list_leaf(schema, column, *nodes.front());
}

std::string printable(std::string_view text) {
  std::string result(text.substr(0, kQuotedMax));
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return text.size() > kQuotedMax ? result + "..." : result;
}

}  // namespace batchloom::sources
