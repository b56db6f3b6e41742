// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_toml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/control/pipeline_describe.h"
#include "batchloom/control/pipeline_testing.h"
#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/sources/parquet_reader.h"

namespace batchloom::control {
namespace {

using planning::Schedule;
using planning::Weight;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(PipelineToml, ReadsWhatIsSaid) {
  const Result<PipelineFile> pipeline = parse_plain(plain_pipeline_text());
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  const PipelineConfig& config = pipeline->config;
  EXPECT_EQ(config.seed, 17u);
  EXPECT_EQ(config.run, (RunConfig{.steps = 10'000, .split = "train"}));
  EXPECT_EQ(config.store.url, "./stream");
  EXPECT_EQ(config.store.lead_steps, 64u);
  EXPECT_EQ(config.store.retain_max_bytes, std::uint64_t{200} << 30);
  EXPECT_EQ(model::to_string(config.topology.axes), "pp=1 dp=4 cp=2 tp=1");
  EXPECT_EQ(config.step.units, 524'288u);
  EXPECT_EQ(config.step.max_sample_tokens, 16'384u);
  EXPECT_EQ(config.tokens.vocab, 300u);
  EXPECT_THAT(config.tokens.end, ElementsAre(257u));
  EXPECT_EQ(config.balance.strategy, planning::Balance::kTwoLevel);
  EXPECT_EQ(config.limits.memory_bytes, std::uint64_t{3} << 30);
  EXPECT_EQ(pipeline->lines.at("step.tokens"), 17u);
}

TEST(PipelineToml, ReadsSources) {
  const Result<PipelineFile> pipeline = parse_plain(plain_pipeline_text());
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  ASSERT_EQ(pipeline->config.sources.size(), 2u);
  const SourceConfig& docs = pipeline->config.sources[0];
  EXPECT_EQ(docs.name, "docs");
  EXPECT_THAT(docs.files, ElementsAre("data/docs-*.jsonl"));
  EXPECT_THAT(docs.paths, ElementsAre("data/docs-0.jsonl", "data/docs-1.jsonl"));
  EXPECT_EQ(docs.fields, sources::RecordFields(sources::TextField{"body"}));
  EXPECT_THAT(docs.split, ElementsAre(Pair("train", 999), Pair("valid", 1)));
  EXPECT_EQ(docs.split_by, (SplitBy{SplitRule::kContent, ""}));
  EXPECT_EQ(docs.weight, Schedule(Weight(500'000'000)));
  const SourceConfig& code = pipeline->config.sources[1];
  EXPECT_EQ(code.fields, sources::RecordFields(sources::AnswerFields{"q", "a"}));
  EXPECT_EQ(code.loss_on, sources::LossOn::kAnswer);
  EXPECT_EQ(code.order, planning::Order::kFile);
  EXPECT_EQ(code.exhausted, planning::Exhausted::kRepeat);
  EXPECT_EQ(code.epochs, 3u);
  EXPECT_EQ(code.weight.at(model::Step(1'000)), Weight(250'000'000));
}

TEST(PipelineToml, WhatIsNotSaidHasItsDefault) {
  const Result<PipelineFile> pipeline = parse_plain(shortest_pipeline_text());
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  PipelineConfig expected;
  expected.store.url = "s";
  expected.step.unit = planning::StepUnit::kSamples;
  expected.step.units = 4;
  expected.step.max_sample_tokens = 100;
  SourceConfig& source = expected.sources.emplace_back();
  source.name = "a";
  source.files = source.paths = {"data/code.jsonl"};
  source.fields = sources::TextField{"text"};
  EXPECT_EQ(pipeline->config, expected);
  EXPECT_FALSE(pipeline->lines.contains("store.lead_steps"));
}

TEST(PipelineToml, LossFollowsTheFields) {
  const auto loss_with = [](std::string_view fields) {
    const auto parsed = parse_plain(fmt::format(
        "{}fields = {}\n",
        text_with(shortest_pipeline_text(), "\"bytes\"", "\"bytes\"\nvocab = 300"), fields));
    EXPECT_TRUE(parsed.is_ok()) << parsed.status().to_string();
    return parsed->config.sources[0].loss_on;
  };
  EXPECT_EQ(loss_with("{ text = \"t\" }"), sources::LossOn::kAll);
  EXPECT_EQ(loss_with("{ prompt = \"q\", answer = \"a\" }"), sources::LossOn::kAnswer);
}

TEST(PipelineToml, SourcesOfIdsNeedNoTokenizer) {
  std::string text =
      text_with(shortest_pipeline_text(), "\"bytes\"", "{ kind = \"ids\" }\nvocab = 32_000");
  text = text_with(text, "data/code.jsonl", "ids/*");
  const Result<PipelineFile> pipeline = parse_plain(text);
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  EXPECT_EQ(pipeline->config.tokens.tokenizer, TokenizerKind::kIds);
  EXPECT_EQ(pipeline->config.sources[0].format, SourceFormat::kMegatron);
  EXPECT_THAT(pipeline->config.sources[0].paths, ElementsAre("ids/a.bin", "ids/b.bin"));
  EXPECT_EQ(pipeline->config.sources[0].fields, std::nullopt);
  text = text_with(shortest_pipeline_text(), "\"bytes\"", "\"ids\"\nvocab = 32_000");
  text += "fields = { tokens = \"ids\", loss_mask = \"m\" }\n";
  const Result<PipelineFile> masked = parse_plain(text);
  ASSERT_TRUE(masked.is_ok()) << masked.status().to_string();
  EXPECT_EQ(masked->config.sources[0].loss_on, sources::LossOn::kMask);
}

TEST(PipelineToml, SamplesOfTarsHaveTextInTheirMembers) {
  const std::string text = text_with(shortest_pipeline_text(), "data/code.jsonl", "data/x.tar");
  const Result<PipelineFile> pipeline = parse_plain(text);
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  EXPECT_EQ(pipeline->config.sources[0].format, SourceFormat::kTar);
  EXPECT_EQ(pipeline->config.sources[0].fields, sources::RecordFields(sources::TextField{"txt"}));
  const Result<PipelineFile> named =
      parse_plain(text_with(shortest_pipeline_text(), "data/code.jsonl", "data/odd.name") +
                  "format = \"tar\"\nfields = { prompt = \"q.txt\", answer = \"json.a\" }\n");
  ASSERT_TRUE(named.is_ok()) << named.status().to_string();
  EXPECT_EQ(named->config.sources[0].format, SourceFormat::kTar);
  EXPECT_EQ(named->config.sources[0].loss_on, sources::LossOn::kAnswer);
}

TEST(PipelineToml, TextHasNoFields) {
  const std::string text = text_with(shortest_pipeline_text(), "data/code.jsonl", "data/odd.name");
  const Result<PipelineFile> pipeline = parse_plain(text + "format = \"text\"\n");
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  EXPECT_EQ(pipeline->config.sources[0].format, SourceFormat::kText);
  EXPECT_EQ(pipeline->config.sources[0].fields, std::nullopt);
  EXPECT_EQ(pipeline->config.sources[0].loss_on, sources::LossOn::kAll);
}

TEST(PipelineToml, IndexesBesideFilesAreNoFiles) {
  NamedFiles files = plain_files();
  files.matches["data/code.jsonl"] = {"data/code.jsonl", "data/code.jsonl.blidx"};
  const Result<PipelineFile> pipeline =
      parse_pipeline(shortest_pipeline_text(), "p.toml", files.inputs());
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  EXPECT_THAT(pipeline->config.sources[0].paths, ElementsAre("data/code.jsonl"));
}

TEST(PipelineToml, ParquetHasTextAsJsonLinesDo) {
  const std::string text(shortest_pipeline_text());
  for (const std::string& named :
       {text_with(text, "data/code.jsonl", "data/x.parquet"),
        text_with(text, "data/code.jsonl", "data/odd.name") + "format = \"parquet\"\n"}) {
    const Result<PipelineFile> pipeline = parse_plain(named);
    if (!sources::parquet_is_built().is_ok()) {
      EXPECT_THAT(pipeline.status().to_string(), HasSubstr("pip install pyarrow"));
      continue;
    }
    ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
    EXPECT_EQ(pipeline->config.sources[0].format, SourceFormat::kParquet);
    EXPECT_EQ(pipeline->config.sources[0].fields,
              sources::RecordFields(sources::TextField{"text"}));
  }
}

TEST(PipelineToml, PathsCountFromTheFilesFolder) {
  EXPECT_EQ(path_beside("p.toml", "data/x"), "data/x");
  EXPECT_EQ(path_beside("a/b/p.toml", "data/x"), "a/b/data/x");
  EXPECT_EQ(path_beside("/p.toml", "x"), "/x");
  EXPECT_EQ(path_beside("a/p.toml", "/data/x"), "/data/x");
  EXPECT_EQ(path_beside("a/p.toml", "s3://bucket/x"), "s3://bucket/x");

  NamedFiles files;
  files.matches["conf/data/code.jsonl"] = {"conf/data/code.jsonl"};
  files.texts["conf/p.toml"] =
      std::string(shortest_pipeline_text()) + "[balance]\ncost_model = \"mine.toml\"\n";
  planning::CostModel mine = planning::builtin_cost_model("h200-llama7b").value();
  mine.name = "mine";
  files.texts["conf/mine.toml"] = planning::to_toml(mine);
  const Result<PipelineFile> pipeline = read_pipeline("conf/p.toml", files.inputs());
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  EXPECT_EQ(pipeline->config.balance.costs, mine);
  EXPECT_THAT(pipeline->config.sources[0].paths, ElementsAre("conf/data/code.jsonl"));
}

TEST(PipelineToml, AModelIsReadAndKeepsItsName) {
  const std::string text = text_with(plain_pipeline_text(), "\"bytes\"\nvocab = 300",
                                     "{ kind = \"sentencepiece\", model = \"bpe.model\" }");
  const Result<PipelineFile> pipeline = parse_plain(text);
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  const TokensConfig& tokens = pipeline->config.tokens;
  EXPECT_EQ(tokens.tokenizer, TokenizerKind::kSentencePiece);
  EXPECT_EQ(tokens.model.file, "bpe.model");
  EXPECT_EQ(tokens.vocab, tokens.model.content->pieces());
  EXPECT_THAT(describe(*pipeline),
              HasSubstr("tokenizer = { kind = \"sentencepiece\", model = \"bpe.model\" }\n"));
  const Result<PipelineFile> again = parse_plain(describe(*pipeline));
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->config, pipeline->config);
}

TEST(PipelineToml, AFunctionIsReadAndNotCalled) {
  const std::string text =
      text_with(plain_pipeline_text(), "\"bytes\"",
                "{ kind = \"python\", function = \"chat:f\", files = [\"a.json\", \"b.json\"] }");
  const Result<PipelineFile> pipeline = parse_plain(text);
  ASSERT_TRUE(pipeline.is_ok()) << pipeline.status().to_string();
  const TextFunction& function = pipeline->config.tokens.function;
  EXPECT_EQ(function.name, "chat:f");
  EXPECT_EQ(function.folder, ".");
  EXPECT_EQ(function.source_bytes, 17u);
  EXPECT_EQ(function.files_bytes, 5u);
  EXPECT_THAT(describe(*pipeline),
              HasSubstr("tokenizer = { kind = \"python\", function = \"chat:f\", files = "
                        "[\"a.json\", \"b.json\"] }\n"));
  const Result<PipelineFile> again = parse_plain(describe(*pipeline));
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->config, pipeline->config);
}

TEST(PipelineToml, WhatItNamesAndCannotReadIsNamed) {
  EXPECT_EQ(refusal_with("\"h200-llama7b\"", "\"mine.toml\""),
            "invalid: p.toml: line 27: balance.cost_model: mine.toml: there is no such file");
  NamedFiles files = plain_files();
  EXPECT_THAT(read_pipeline("gone.toml", files.inputs()).status().to_string(),
              HasSubstr("gone.toml: there is no such file"));
  PipelineInputs inputs = files.inputs();
  inputs.expand = [](const std::string& pattern) -> Result<std::vector<std::string>> {
    return Status::unavailable(pattern + ": the disk is gone");
  };
  const auto parsed = parse_pipeline(shortest_pipeline_text(), "p.toml", inputs);
  EXPECT_THAT(parsed.status().to_string(),
              HasSubstr("line 10: source.files: data/code.jsonl: the disk is gone"));
}

TEST(PipelineToml, AllFaultsAreToldInTheirOrder) {
  std::string text = text_with(plain_pipeline_text(), "weight = 0.5", "weight = -0.5");
  text = text_with(text, "seed = 17", "sede = 17");
  text = text_with(text, "\"3 GiB\"", "\"3 gigs\"");
  const std::string refusal = parse_plain(text).status().to_string();
  EXPECT_EQ(refusal,
            "invalid: p.toml: 3 faults\n"
            "  line 1: \"sede\" is no key; did you mean 'seed'?\n"
            "  line 30: limits.memory: \"3 gigs\" is no size; write \"512 MiB\", \"2 GiB\" or "
            "\"1 TiB\"\n"
            "  line 38: source.weight: -0.5 is not within 0 to 100000");
}

TEST(PipelineToml, ManyFaultsAreCounted) {
  std::string text(shortest_pipeline_text());
  for (int i = 0; i < 30; ++i) text += fmt::format("odd-{} = 1\n", i);
  const std::string refusal = parse_plain(text).status().to_string();
  EXPECT_THAT(refusal, HasSubstr("p.toml: 30 faults"));
  EXPECT_THAT(refusal, HasSubstr("line 30: \"odd-19\""));
  EXPECT_THAT(refusal, testing::Not(HasSubstr("line 31:")));
  EXPECT_THAT(refusal, HasSubstr("and 10 more"));
}

}  // namespace
}  // namespace batchloom::control
