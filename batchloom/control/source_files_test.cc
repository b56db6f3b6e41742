// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_files.h"

#include <gmock/gmock.h>

namespace batchloom::control {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SourceFiles, NamesTellFormats) {
  EXPECT_EQ(format_of_path("a/b.jsonl")->built, SourceFormat::kJsonl);
  EXPECT_EQ(format_of_path("a.bin")->built, SourceFormat::kMegatron);
  EXPECT_EQ(format_of_path("a.idx")->built, SourceFormat::kMegatron);
  EXPECT_EQ(format_of_path("a.jsonl.gz")->built, SourceFormat::kJsonl);
  EXPECT_EQ(format_of_path("a.jsonl.zst")->built, SourceFormat::kJsonl);
  EXPECT_EQ(format_of_path("a.tar")->built, SourceFormat::kTar);
  EXPECT_EQ(format_of_path("a.tar.gz")->built, SourceFormat::kTar);
  EXPECT_EQ(format_of_path("a.tar.zst")->built, SourceFormat::kTar);
  EXPECT_EQ(format_of_path("a.tgz"), nullptr);
  EXPECT_EQ(format_of_path("a.txt")->built, SourceFormat::kText);
  EXPECT_EQ(format_of_path("a.txt.zst")->built, SourceFormat::kText);
  EXPECT_EQ(format_of_path("README.md")->built, SourceFormat::kText);
  EXPECT_EQ(format_of_path("a.json"), nullptr);
  EXPECT_EQ(format_of_path("jsonl"), nullptr);
  EXPECT_EQ(format_of_path("a.parquet")->built, SourceFormat::kParquet);
  EXPECT_EQ(format_of_name("arrow")->built, std::nullopt);
  EXPECT_EQ(format_of_name("jsno"), nullptr);
  for (const KnownFormat& format : known_formats()) {
    EXPECT_TRUE(!format.built || to_string(*format.built) == format.name) << format.name;
  }
}

TEST(SourceFiles, OfMegatronsPairsTheDataIsRead) {
  const std::vector<MatchedFiles> matched = {{"*", {"b.bin", "b.idx", "a.idx"}},
                                             {"c.bin", {"c.bin"}}};
  EXPECT_THAT(files_to_read(SourceFormat::kMegatron, matched).value(),
              ElementsAre("b.bin", "a.bin", "c.bin"));
  EXPECT_THAT(files_to_read(SourceFormat::kJsonl, matched).value(),
              ElementsAre("b.bin", "b.idx", "a.idx", "c.bin"));
}

TEST(SourceFiles, AFileStandsThereOnce) {
  const std::vector<MatchedFiles> matched = {{"a*", {"a1", "a2"}}, {"*2", {"a2"}}};
  EXPECT_THAT(files_to_read(SourceFormat::kJsonl, matched).status().to_string(),
              HasSubstr("\"a2\" is matched by \"a*\" and again by \"*2\""));
}

TEST(SourceFiles, AllHaveOneFormat) {
  const std::vector<MatchedFiles> odd = {{"x", {"x"}}};
  EXPECT_EQ(common_format(SourceFormat::kJsonl, odd).value(), SourceFormat::kJsonl);
  EXPECT_EQ(common_format(SourceFormat::kTar, odd).value(), SourceFormat::kTar);
  EXPECT_EQ(common_format(SourceFormat::kText, odd).value(), SourceFormat::kText);
  EXPECT_TRUE(common_format(std::nullopt, odd).is(ErrorKind::kInvalid));
  EXPECT_TRUE(common_format(SourceFormat::kMegatron, odd).is(ErrorKind::kInvalid));
  const std::vector<MatchedFiles> two = {{"*", {"a.jsonl", "b.bin"}}};
  EXPECT_THAT(common_format(std::nullopt, two).status().to_string(),
              HasSubstr("\"a.jsonl\" is jsonl, and \"b.bin\" is megatron"));
}

}  // namespace
}  // namespace batchloom::control
