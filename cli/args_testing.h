// SPDX-License-Identifier: Apache-2.0
// What tests of the command line's reader share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/args.h"

namespace batchloom::cli {

/// What `batchloom` makes of `args`.
inline std::variant<Command, Answer> parse(std::vector<const char*> args) {
  args.insert(args.begin(), "batchloom");
  return parse_args(args, "1.2.3");
}

/// The options of the command `Args`; fails the test where they are refused.
template <class Args>
Args parse_as(std::vector<const char*> args) {
  const auto parsed = parse(std::move(args));
  if (const auto* answer = std::get_if<Answer>(&parsed)) {
    ADD_FAILURE() << answer->err << answer->out;
    return {};
  }
  return std::get<Args>(std::get<Command>(parsed));
}

/// What is printed for `args`, which are refused.
inline std::string usage_error(std::vector<const char*> args) {
  const auto parsed = parse(std::move(args));
  const auto* answer = std::get_if<Answer>(&parsed);
  if (answer == nullptr) return "it was accepted";
  EXPECT_EQ(answer->exit_code, kUsage);
  EXPECT_THAT(answer->out, testing::IsEmpty());
  return answer->err;
}

}  // namespace batchloom::cli
