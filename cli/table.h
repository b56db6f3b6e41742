// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace batchloom::cli {

/// Rows below a heading, for people: columns are two spaces apart; the first begins at the left,
/// the others end at the right. One thread at a time.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(Row heading) { rows_.push_back(std::move(heading)); }

  /// A row may have fewer cells than the heading, not more (checked).
  void add(Row row);
  /// Lines without spaces at their ends.
  std::string to_text() const;

 private:
  std::vector<Row> rows_;
};

}  // namespace batchloom::cli
