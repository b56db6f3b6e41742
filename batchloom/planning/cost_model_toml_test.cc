// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_model_toml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/toml_table.h"

namespace batchloom::planning {
namespace {

CostModel sample_model() {
  CostModel model = builtin_cost_model("h200-llama7b").value();
  model.name = "our \"box\"\\\n";
  model.version = 7;
  return model;
}

TEST(CostModelToml, AModelComesBack) {
  for (const std::string_view name : builtin_cost_model_names()) {
    const CostModel model = builtin_cost_model(name).value();
    EXPECT_EQ(parse_cost_model(to_toml(model), "m.toml").value(), model);
  }
  CostModel model = sample_model();
  model.encoder = CostCurve::create({{16, 5}, {64, 9}}, CostCurve::Growth::kQuadratic).value();
  EXPECT_EQ(parse_cost_model(to_toml(model), "m.toml").value(), model);
}

/// `text` with the first `from` replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_TRUE(at != std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CostModelToml, WhatIsWrongIsNamedByLineAndKey) {
  const std::string good = to_toml(sample_model());
  const std::string first_point = good.substr(good.find("  ["), good.find("],") - good.find("  ["));
  const std::pair<std::string, std::string> cases[] = {
      {"", "m.toml: line 1: 'format' is missing"},
      {"format = ", "m.toml: line 1: "},
      {replaced(good, "format = 0", "format = 1"),
       "line 1: 'format' must be a whole number from 0"},
      {replaced(good, "version = 7", "version = 7.5"), "line 3: 'version' must be a whole number"},
      {replaced(good, "version = 7", "version = -7"), "line 3: 'version' must be a whole number"},
      {replaced(good, "layers = 32", "layers = 0"),
       "line 4: 'layers' must be a whole number from 1"},
      {replaced(good, "layers = 32", "layers = 65537"), "from 1 to 65536"},
      {replaced(good, "launch_ns = ", "launch_ns = 9999"), "to 1000000000"},
      {replaced(good, "kv_bytes_per_token = ", "kv_bytes_per_token = 9000000"), "to 1073741824"},
      {replaced(good, "copy_bytes_per_s = ", "copy_bytes_per_s = 9 #"),
       "copy_bytes_per_s is 9; at least 1000000, or 0"},
      {replaced(good, "layers = 32", "layer = 32"), "'layers' is missing"},
      {replaced(good, "name = ", "name = 3 #"), "line 2: 'name' must be text in quotes"},
      {replaced(good, "[linear]", "[lines]"), "'linear' is missing"},
      {good + "[more]\n", "nothing is called 'more' here; there may be activation_bytes_per_token"},
      {replaced(good, "quadratic", "cubic"), "'growth' must be \"linear\" or \"quadratic\""},
      {replaced(good, "both_ps = [", "both_ps = [\n[4294967296, 1],"),
       "more than 4294967295 tokens"},
      {replaced(good, "both_ps = [", "both_ps = [\n[1, 2, 3],"), "must be a list of lists of 2"},
      {replaced(good, "both_ps = [", "both_ps = [\n[-1, 2],"), "must be a list of lists of 2"},
      {replaced(good, "both_ps = [", "both_ps = [\n[9999999, 2],"), "'both_ps' is no curve: "},
      {replaced(good, "both_ps = [", "both_ps = 3\nother = ["), "must be a list of lists of 2"},
  };
  for (const auto& [text, why] : cases) {
    const Result<CostModel> model = parse_cost_model(text, "m.toml");
    ASSERT_TRUE(model.is(ErrorKind::kInvalid)) << why;
    EXPECT_TRUE(model.status().message().find(why) != std::string::npos)
        << model.status().message() << "\nshould say\n"
        << why;
  }
}

RC_GTEST_PROP(CostModelToml, DamageGivesAnErrorOrAModel, ()) {
  std::string text = to_toml(sample_model());
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto bytes = *rc::gen::arbitrary<std::string>();
  text.replace(at, *rc::gen::inRange<std::size_t>(0, 10), bytes);
  const Result<CostModel> model = parse_cost_model(text, "m.toml");
  RC_ASSERT(model.is_ok() || model.is(ErrorKind::kInvalid));
}

TEST(TomlTable, FallbacksAndFlags) {
  const TomlTable table =
      TomlTable::parse("yes = true\nn = 3\n[t]\n[[l]]\na=1\n[[l]]\n", "t").value();
  EXPECT_TRUE(table.flag("yes").value());
  EXPECT_TRUE(table.flag("more", true).value());
  EXPECT_TRUE(table.flag("n").is(ErrorKind::kInvalid));
  EXPECT_EQ(table.number("m", {}, 5).value(), 5u);
  EXPECT_EQ(table.text("m", "x").value(), "x");
  EXPECT_EQ(table.finish().message(),
            "t: line 4: nothing is called 'l' here; there may be m, more, n, yes");
  EXPECT_EQ(table.tables("l").value().size(), 2u);
  EXPECT_TRUE(table.table("t").value().has_value());
  EXPECT_FALSE(table.table("u").value().has_value());
  EXPECT_TRUE(table.tables("t").is(ErrorKind::kInvalid));
  EXPECT_TRUE(table.table("n").is(ErrorKind::kInvalid));
  EXPECT_TRUE(table.finish().is_ok());
}

}  // namespace
}  // namespace batchloom::planning
