// SPDX-License-Identifier: Apache-2.0
#include "cli/step_draws.h"

#include <gtest/gtest.h>

namespace batchloom::cli {
namespace {

model::PlanSample sample(std::uint32_t source, std::uint32_t pass, std::uint32_t tokens) {
  const model::SampleId id = {model::SourceId(source), model::Epoch(pass), {}, {}};
  return {.id = id, .tokens = tokens};
}

store::BatchIndex index_of(std::vector<std::string> names) {
  store::BatchIndex index;
  for (std::string& name : names) index.origin.sources.push_back({.name = std::move(name)});
  return index;
}

TEST(StepDraws, CountsBySourceAndPass) {
  store::BatchIndex index = index_of({"docs", "code", "none"});
  index.steps.resize(2);
  index.steps[0].plan.samples = {sample(0, 3, 10), sample(1, 0, 5)};
  index.steps[1].plan.samples = {sample(0, 4, 7), sample(0, 2, 1)};
  StepDraws draws;
  add_draws(index, 0, draws);
  const SourceDraws code{.samples = 1, .tokens = 5};
  EXPECT_EQ(draws.at("code"), code);
  add_draws(index, 1, draws);
  const SourceDraws docs{
      .samples = 3, .tokens = 18, .first_pass = model::Epoch(2), .last_pass = model::Epoch(4)};
  EXPECT_EQ(draws.at("docs"), docs);
  EXPECT_EQ(draws.at("code"), code);
  EXPECT_FALSE(draws.contains("none"));
}

TEST(StepDraws, GoesByNamesAndNotByNumbers) {
  StepDraws draws;
  for (const auto& names : {std::vector<std::string>{"docs", "code"}, {"code", "docs"}}) {
    store::BatchIndex index = index_of(names);
    index.steps.resize(1);
    index.steps[0].plan.samples = {sample(0, 0, 8)};
    add_draws(index, 0, draws);
  }
  const SourceDraws once{.samples = 1, .tokens = 8};
  EXPECT_EQ(draws.at("docs"), once);
  EXPECT_EQ(draws.at("code"), once);
}

}  // namespace
}  // namespace batchloom::cli
