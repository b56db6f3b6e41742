// SPDX-License-Identifier: Apache-2.0
#include "cli/expand_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace batchloom::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ExpandFiles, MatchesFilesAsAShellDoes) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "batchloom_expand_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "sub.jsonl");
  for (const char* name : {"b.jsonl", "a.jsonl", ".hidden.jsonl", "c.txt", "sub.jsonl/d.jsonl"}) {
    std::ofstream(folder / name) << "{}\n";
  }
  const std::string at = folder.string() + "/";
  EXPECT_THAT(expand_files(at + "*.jsonl").value(), ElementsAre(at + "a.jsonl", at + "b.jsonl"));
  EXPECT_THAT(expand_files(at + "*/*").value(), ElementsAre(at + "sub.jsonl/d.jsonl"));
  EXPECT_THAT(expand_files(at + "c.txt").value(), ElementsAre(at + "c.txt"));
  EXPECT_THAT(expand_files(at + "*.bin").value(), IsEmpty());
  EXPECT_THAT(expand_files("s3://bucket/x").status().to_string(), HasSubstr("not built yet"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace batchloom::cli
