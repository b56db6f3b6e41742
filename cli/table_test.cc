// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

namespace batchloom::cli {
namespace {

TEST(Table, ColumnsStandBelowEachOther) {
  Table table({"name", "n", "what"});
  table.add({"a", "1000", ""});
  table.add({"longer", "2", "yes"});
  table.add({"b"});
  EXPECT_EQ(table.to_text(),
            "name       n  what\n"
            "a       1000\n"
            "longer     2   yes\n"
            "b\n");
}

}  // namespace
}  // namespace batchloom::cli
