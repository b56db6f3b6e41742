// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/file_calls.h"

#include <gtest/gtest.h>

#include <optional>

namespace batchloom::sources {
namespace {

TEST(FileCalls, AreOutUntilTheyComeBack) {
  FileCalls calls;
  const FileCalls::Mark unseen(nullptr, FileCallStage::kRead, "c");
  std::optional<FileCalls::Mark> first(std::in_place, &calls, FileCallStage::kLook, "a");
  const FileCalls::Mark second(&calls, FileCallStage::kRead, "b");
  const FileCall of_b{.number = 1, .stage = FileCallStage::kRead, .path = "b"};
  EXPECT_EQ(calls.out(), (std::vector<FileCall>{
                             {.number = 0, .stage = FileCallStage::kLook, .path = "a"}, of_b}));
  first.reset();
  EXPECT_EQ(calls.out(), std::vector{of_b});
  first.emplace(&calls, FileCallStage::kLook, "a");
  EXPECT_EQ(calls.out().back().number, 2U) << "the same again is another call";
}

}  // namespace
}  // namespace batchloom::sources
