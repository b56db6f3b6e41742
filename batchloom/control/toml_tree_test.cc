// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/toml_tree.h"

#include <gmock/gmock.h>

namespace batchloom::control {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TomlTree, HasValuesWithTheirLines) {
  const TomlNode root = parse_toml(R"(b = 1
a = [
  2.5,
  "x",
]

[c]
d = true
e = 1979-05-27

[[f]]
[[f]]
g.h = -3

[x.y]
)",
                                   "t.toml")
                            .value();
  EXPECT_THAT(root.keys, ElementsAre("a", "b", "c", "f", "x"));
  EXPECT_EQ(root.find("b")->whole, 1);
  EXPECT_EQ(root.find("z"), nullptr);
  EXPECT_EQ(root.find("b")->find("z"), nullptr);
  const TomlNode& list = *root.find("a");
  EXPECT_EQ(list.line, 2u);
  EXPECT_EQ(list.items[0].fraction, 2.5);
  EXPECT_EQ(list.items[1].text, "x");
  EXPECT_EQ(list.items[1].line, 4u);
  EXPECT_EQ(root.find("c")->line, 7u);
  EXPECT_EQ(root.find("c")->find("d")->whole, 1);
  EXPECT_EQ(root.find("c")->find("e")->type, TomlType::kTime);
  const TomlNode& tables = *root.find("f");
  ASSERT_EQ(tables.items.size(), 2u);
  EXPECT_EQ(tables.items[0].line, 11u);
  EXPECT_EQ(tables.items[1].line, 12u);
  EXPECT_EQ(tables.items[1].find("g")->find("h")->whole, -3);
  EXPECT_EQ(tables.items[1].find("g")->line, 13u);
  EXPECT_EQ(root.find("x")->line, 15u);
}

TEST(TomlTree, WhatIsNoTomlIsNamedByItsPlace) {
  EXPECT_THAT(parse_toml("a = 1\nb = {", "t.toml").status().to_string(),
              HasSubstr("invalid: t.toml: line 2, column "));
}

}  // namespace
}  // namespace batchloom::control
