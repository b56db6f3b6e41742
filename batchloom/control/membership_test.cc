// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/membership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>

#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Membership, ListsWhatDecides) {
  EXPECT_EQ(membership_of_plain(plain_pipeline_text()).text(),
            R"(run.split = "train"
seed = 17
source.code.epochs = 3
source.code.exhausted = "repeat"
source.code.fields = { prompt = "q", answer = "a" }
source.code.file."code.jsonl" = 115 bytes, faf23d5fcfb89639
source.code.files = 1 file, 115 bytes, order 4314e7d63df5fb2c
source.code.format = "jsonl"
source.code.loss_on = "answer"
source.code.order = "file"
source.code.split = { train = 1 }
source.code.weight = [{ step = 0, value = 0.1 }, { step = 2000, value = 0.4, ramp = "linear" }]
source.docs.exhausted = "stop"
source.docs.fields = { text = "body" }
source.docs.file."docs-0.jsonl" = 117 bytes, b753fa3058d07623
source.docs.file."docs-1.jsonl" = 117 bytes, ff614feace653078
source.docs.files = 2 files, 234 bytes, order b44261bd7b915bc2
source.docs.format = "jsonl"
source.docs.loss_on = "all"
source.docs.order = "random"
source.docs.split = { train = 999, valid = 1 }
source.docs.split_by = "content"
source.docs.weight = 0.5
sources = ["docs", "code"]
step.max_sample_tokens = 16384
step.over_length = "split"
step.tokens = 524288
tokens.begin = []
tokens.end = [257]
tokens.tokenizer = "bytes"
tokens.vocab = 300
)");
}

TEST(Membership, ASplitByNumberIsThatOfOlderStreams) {
  const auto splits_of = [](std::string_view by) {
    const std::string text = text_with(plain_pipeline_text(), "split = { train = 999, valid = 1 }",
                                       fmt::format("split = {{ train = 999, valid = 1 }}\n{}", by));
    std::vector<std::string> told;
    const Membership membership = membership_of_plain(text);
    for (const auto& [key, value] : membership.lines()) {
      if (key.find(".split") != std::string::npos) told.push_back(value);
    }
    return told;
  };
  const std::string code = "{ train = 1 }";
  const std::string docs = "{ train = 999, valid = 1 }";
  // run.split comes first; of code, which is not divided, no rule is told.
  EXPECT_THAT(splits_of("split_by = \"number\""), ElementsAre("\"train\"", code, docs));
  EXPECT_THAT(splits_of("split_by = { field = \"author\" }"),
              ElementsAre("\"train\"", code, docs, "{ field = \"author\" }"));
  EXPECT_THAT(splits_of(""), ElementsAre("\"train\"", code, docs, "\"content\""));
}

TEST(Membership, TellsWhatChanged) {
  const std::string_view plain = plain_pipeline_text();
  const Membership before = membership_of_plain(plain);
  EXPECT_THAT(differences(before, before), IsEmpty());
  std::string text = text_with(plain, "weight = 0.5", "weight = 0.25");
  text = text_with(text, "\"repeat\"\nepochs = 3", "\"drop\"");
  text = text_with(text, "tokens = 524_288", "samples = 64");
  EXPECT_THAT(differences(before, membership_of_plain(text)),
              ElementsAre("source.code.epochs: 3 -> (nothing)",
                          "source.code.exhausted: \"repeat\" -> \"drop\"",
                          "source.docs.weight: 0.5 -> 0.25", "step.samples: (nothing) -> 64",
                          "step.tokens: 524288 -> (nothing)"));
  EXPECT_THAT(differences(before, membership_of_plain(text), 2),
              ElementsAre("source.code.epochs: 3 -> (nothing)",
                          "source.code.exhausted: \"repeat\" -> \"drop\"", "and 3 more"));
  EXPECT_THAT(differences(Membership(), before, 0),
              ElementsAre(fmt::format("and {} more", before.lines().size())));
}

TEST(Membership, KnowsTheTokenizer) {
  std::string text = text_with(plain_pipeline_text(), "{ text = \"body\" }", "{ tokens = \"t\" }");
  const std::string bytes = text;
  text = text_with(text, "{ prompt = \"q\", answer = \"a\" }", "{ tokens = \"t\" }");
  text = text_with(text, "\"answer\"", "\"all\"");
  text = text_with(text, "\"bytes\"", "\"ids\"");
  EXPECT_THAT(differences(membership_of_plain(bytes), membership_of_plain(text)),
              Contains("tokens.tokenizer: \"bytes\" -> \"ids\""));
}

TEST(Membership, TheOrderOfSourcesDecides) {
  PipelineConfig config = parse_plain(plain_pipeline_text()).value().config;
  const Membership before = Membership::create(config, fingerprints_of(config)).value();
  std::ranges::reverse(config.sources);
  EXPECT_THAT(differences(before, Membership::create(config, fingerprints_of(config)).value()),
              ElementsAre("sources: [\"docs\", \"code\"] -> [\"code\", \"docs\"]"));
}

// --- files -------------------------------------------------------------------------------------

/// A membership whose only source has these files.
Membership membership_of_files(const std::vector<FileFingerprint>& files) {
  PipelineConfig config = parse_plain(plain_pipeline_text()).value().config;
  config.sources.resize(1);
  config.sources[0].paths.clear();
  for (const FileFingerprint& file : files) config.sources[0].paths.push_back(file.path);
  return Membership::create(config, std::vector<std::vector<FileFingerprint>>{files}).value();
}

TEST(Membership, DataMayMoveAsAWhole) {
  EXPECT_EQ(membership_of_files({{"data/a/x", 1, 2}, {"data/b/x", 3, 4}}),
            membership_of_files({{"/mnt/a/x", 1, 2}, {"/mnt/b/x", 3, 4}}));
  EXPECT_EQ(membership_of_files({{"data/x", 1, 2}}), membership_of_files({{"x", 1, 2}}));
  EXPECT_NE(membership_of_files({{"a/x", 1, 2}, {"b/x", 3, 4}}),
            membership_of_files({{"a/x", 1, 2}, {"c/x", 3, 4}}));
}

TEST(Membership, AFileThatChangedIsNamed) {
  const Membership before = membership_of_files({{"d/a b", 1, 2}, {"d/c", 3, 4}});
  EXPECT_THAT(differences(before, membership_of_files({{"d/a b", 1, 5}, {"d/c", 3, 4}})),
              ElementsAre("source.docs.file.\"a b\": 1 bytes, 0000000000000002 -> 1 bytes, "
                          "0000000000000005"));
  const auto gone = differences(before, membership_of_files({{"d/a b", 1, 2}}));
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0], "source.docs.file.\"c\": 3 bytes, 0000000000000004 -> (nothing)");
  EXPECT_THAT(gone[1], HasSubstr("source.docs.files: 2 files, 4 bytes, order "));
  const auto swapped = differences(before, membership_of_files({{"d/c", 3, 4}, {"d/a b", 1, 2}}));
  ASSERT_EQ(swapped.size(), 1u);
  EXPECT_THAT(swapped[0], HasSubstr("source.docs.files: "));
}

TEST(Membership, NamesOfFilesCannotPassForSomethingElse) {
  const Membership odd = membership_of_files({{"d/x\" = 7\nseed = 3", 1, 2}, {"d/\\u003D", 1, 2}});
  EXPECT_THAT(odd.text(), HasSubstr("source.docs.file.\"x\\\" \\u003D 7\\u000Aseed \\u003D 3\" ="));
  EXPECT_EQ(decode_membership(encode_membership(odd).value()).value(), odd);
}

TEST(Membership, FingerprintsOfOtherFilesAreRefused) {
  const PipelineConfig config = parse_plain(plain_pipeline_text()).value().config;
  auto files = fingerprints_of(config);
  std::swap(files[0][0], files[0][1]);
  EXPECT_THAT(Membership::create(config, files).status().to_string(),
              HasSubstr("invalid: membership of source 'docs': fingerprints of 2 files, which are "
                        "not its 2 files in their order"));
  files.pop_back();
  EXPECT_THAT(Membership::create(config, files).status().to_string(),
              HasSubstr("fingerprints of 1 sources, and there are 2"));
}

TEST(MembershipTest, AModelIsKnownByWhatItHolds) {
  const auto with_model = [](std::string_view model) {
    return membership_of_plain(text_with(
        plain_pipeline_text(), "\"bytes\"\nvocab = 300",
        fmt::format("{{ kind = \"sentencepiece\", model = \"{}\" }}\nvocab = 700", model)));
  };
  const Membership bpe = with_model("bpe.model");
  EXPECT_THAT(bpe.text(), HasSubstr("tokens.tokenizer = \"sentencepiece\"\n"
                                    "tokens.tokenizer.model = 9857 bytes, "));
  EXPECT_EQ(bpe, with_model("moved/bpe.model"));
  EXPECT_THAT(differences(bpe, with_model("unigram.model")),
              ElementsAre(StartsWith("tokens.tokenizer.model: 9857 bytes, ")));
}

TEST(MembershipTest, AFunctionIsKnownByItsNameAndWhatItsFilesHold) {
  const auto with = [](std::string_view function, std::string_view files) {
    return membership_of_plain(text_with(
        plain_pipeline_text(), "\"bytes\"",
        fmt::format("{{ kind = \"python\", function = \"{}\", files = {} }}", function, files)));
  };
  const Membership one = with("chat:f", "[\"a.json\"]");
  EXPECT_THAT(one.text(), HasSubstr("tokens.tokenizer = \"python\"\n"
                                    "tokens.tokenizer.files = 1 file, 2 bytes, "));
  EXPECT_THAT(one.text(), HasSubstr("\ntokens.tokenizer.function = \"chat:f\", 17 bytes, "));
  EXPECT_EQ(one, with("chat:f", "[\"moved/a.json\"]"));
  EXPECT_THAT(differences(one, with("chat:f", "[\"b.json\"]")),
              ElementsAre(StartsWith("tokens.tokenizer.files: 1 file, 2 bytes, ")));
  EXPECT_THAT(differences(one, with("chat:g", "[\"a.json\"]")),
              ElementsAre(StartsWith("tokens.tokenizer.function: \"chat:f\", 17 bytes, ")));
  EXPECT_THAT(
      differences(one, with("chat:f", "[]")),
      ElementsAre(AllOf(StartsWith("tokens.tokenizer.files: 1 file"), HasSubstr("(nothing)"))));
}

// --- layout and digests ------------------------------------------------------------------------

RC_GTEST_PROP(MembershipProperty, LayoutIsNoPartOfIt, (std::uint64_t seed)) {
  Random random(seed);
  const PipelineConfig config = any_pipeline(random);
  const PipelineConfig other = any_pipeline(random);
  PipelineConfig mixed = other;
  mixed.seed = config.seed;
  mixed.run.split = config.run.split;
  mixed.step = config.step;
  mixed.tokens = config.tokens;
  mixed.image = config.image;
  mixed.sources = config.sources;
  const auto files = fingerprints_of(config);
  const Membership of_config = Membership::create(config, files).value();
  RC_ASSERT(of_config == Membership::create(mixed, files).value());
  RC_ASSERT(std::ranges::is_sorted(of_config.lines(), {}, &MembershipLine::key));
}

RC_GTEST_PROP(MembershipProperty, EqualDigestsMeanEqualLists, (std::uint64_t seed)) {
  Random random(seed);
  const PipelineConfig one = any_pipeline(random);
  const PipelineConfig two = any_pipeline(random);
  const Membership a = Membership::create(one, fingerprints_of(one)).value();
  const Membership b = Membership::create(two, fingerprints_of(two)).value();
  RC_ASSERT((a.digest() == b.digest()) == (a == b));
  RC_ASSERT(differences(a, b).empty() == (a == b));
  RC_ASSERT(a.digest() == decode_membership(encode_membership(a).value()).value().digest());
}

}  // namespace
}  // namespace batchloom::control
