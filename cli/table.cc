// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/check.h"

namespace batchloom::cli {

void Table::add(Row row) {
  BL_CHECK(row.size() <= rows_.front().size(), "a row of a table has more cells than its heading");
  rows_.push_back(std::move(row));
}

std::string Table::to_text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace batchloom::cli
