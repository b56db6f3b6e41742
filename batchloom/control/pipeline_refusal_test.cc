// SPDX-License-Identifier: Apache-2.0
// What is refused before anything runs, and in which words.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/control/pipeline_testing.h"
#include "batchloom/planning/cost_model_toml.h"

namespace batchloom::control {
namespace {

using testing::HasSubstr;

TEST(PipelineRefusal, UnknownKeysHaveTheNearestSpelling) {
  EXPECT_EQ(refusal_with("max_sample_tokens", "max_sample_token"),
            "invalid: p.toml: 2 faults\n"
            "  line 16: step.max_sample_tokens is missing: tokens of a part, at most\n"
            "  line 18: \"max_sample_token\" is no key of step; did you mean "
            "'max_sample_tokens'?");
  EXPECT_THAT(refusal_with("[topology]", "[topolgy]"),
              HasSubstr("line 12: \"topolgy\" is no key; did you mean 'topology'?"));
  EXPECT_THAT(refusal_with("vocab = 300", "capacity = 300"),
              HasSubstr("\"capacity\" is no key of tokens; did you mean 'topology.capacity'?"));
  EXPECT_THAT(refusal_with("lead_steps = 64", "zzz = 64"),
              HasSubstr("line 9: \"zzz\" is no key of store; there may be url, lead_steps"));
  EXPECT_THAT(refusal_with("value = 0.1", "vlaue = 0.1"),
              HasSubstr("line 46: \"vlaue\" is no key of source.weight; did you mean 'value'?"));
  EXPECT_THAT(refusal_with("max_bytes", "bytes"),
              HasSubstr("\"bytes\" is no key of store.retain; there may be max_bytes"));
  EXPECT_THAT(refusal_with("seed = 17", "\"step.tokens\" = 17"),
              HasSubstr("line 1: \"step.tokens\" is no key"));
}

TEST(PipelineRefusal, NamesNobodyKnows) {
  EXPECT_THAT(refusal_with("\"two_level\"", "\"tow_level\""),
              HasSubstr("line 26: balance.strategy: \"tow_level\" is unknown; did you mean "
                        "\"two_level\"? known: none, lpt, kk, two_level, hdp, two_module"));
  EXPECT_THAT(refusal_with("max_sample_tokens = 16_384",
                           "max_sample_tokens = 16_384\nover_length = \"cut\""),
              HasSubstr("step.over_length: \"cut\" is unknown; known: split, truncate, drop"));
  EXPECT_THAT(refusal_with("order = \"file\"", "order = \"files\""),
              HasSubstr("did you mean \"file\"?"));
  EXPECT_THAT(refusal_with("\"repeat\"", "\"loop\""),
              HasSubstr("known: repeat, stop, drop, error"));
  EXPECT_THAT(refusal_with("\"linear\"", "\"wave\""),
              HasSubstr("source.weight.ramp: \"wave\" is unknown"));
  EXPECT_THAT(refusal_with("loss_on = \"answer\"", "loss_on = \"answers\""),
              HasSubstr("did you mean \"answer\"?"));
  EXPECT_THAT(refusal_with("\"h200-llama7b\"", "\"h100\""), HasSubstr("balance.cost_model: "));
  EXPECT_THAT(refusal_with("split = \"train\"", "split = \"trian\""),
              HasSubstr("line 5: run.split: no source has a share called \"trian\"; did you mean "
                        "\"train\"? known: train, valid"));
}

TEST(PipelineRefusal, WhatIsMissing) {
  EXPECT_THAT(refusal_with("url = \"./stream\"\n", ""),
              HasSubstr("line 7: store.url is missing: where the stream lies"));
  EXPECT_THAT(refusal_with("tokens = 524_288\n", ""), HasSubstr("step.tokens is missing"));
  EXPECT_THAT(refusal_with("tokenizer = \"bytes\"\n", ""),
              HasSubstr("line 20: tokens.tokenizer is missing"));
  EXPECT_THAT(refusal_with("tokenizer = \"bytes\"", "tokenizer = {}"),
              HasSubstr("line 21: tokens.tokenizer.kind is missing"));
  EXPECT_THAT(refusal_with("name = \"docs\"\n", ""), HasSubstr("line 33: source.name is missing"));
  EXPECT_THAT(refusal_with("files = \"data/code.jsonl\"\n", ""),
              HasSubstr("source.files is missing"));
  EXPECT_THAT(refusal_with("{ max_bytes = \"200 GiB\" }", "{}"),
              HasSubstr("line 10: store.retain.max_bytes is missing"));
  EXPECT_THAT(refusal_with("{ step = 0, value = 0.1 }", "{ step = 0 }"),
              HasSubstr("source.weight.value is missing"));
}

TEST(PipelineRefusal, NumbersOutOfRange) {
  EXPECT_THAT(refusal_with("seed = 17", "seed = -1"),
              HasSubstr("line 1: seed: -1 is not within 0 to 9223372036854775807"));
  EXPECT_THAT(refusal_with("steps = 10_000", "steps = 0"), HasSubstr("run.steps: 0 is not within"));
  EXPECT_THAT(refusal_with("lead_steps = 64", "lead_steps = 0"), HasSubstr("not within 1 to"));
  EXPECT_THAT(refusal_with("capacity = 8_192", "capacity = 5_000_000_000"),
              HasSubstr("topology.capacity: 5000000000 is not within 1 to 16777216"));
  EXPECT_THAT(refusal_with("tokens = 524_288", "tokens = 0"), HasSubstr("not within 1 to"));
  EXPECT_THAT(refusal_with("16_384", "4_194_305"), HasSubstr("not within 1 to 4194304"));
  EXPECT_THAT(refusal_with("vocab = 300", "vocab = 3_000_000_000"),
              HasSubstr("not within 1 to 2147483648"));
  EXPECT_THAT(refusal_with("end = [257]", "end = [2, -1]"), HasSubstr("tokens.end: -1 is not"));
  EXPECT_THAT(refusal_with("epochs = 3", "epochs = 0"), HasSubstr("not within 1 to"));
  std::string many = "[0";
  for (int i = 0; i < 1'024; ++i) many += ", 0";
  EXPECT_THAT(refusal_with("[257]", many + "]"),
              HasSubstr("tokens.end: 1025 elements; at most 1024"));
  EXPECT_THAT(refusal_with("valid = 1", "valid = -1"), HasSubstr("valid = -1 is not within 0 to"));
  EXPECT_THAT(refusal_with("\"auto\"", "0"), HasSubstr("limits.workers: 0 is not within 1 to"));
  EXPECT_THAT(refusal_with("seed = 17", "seed = 9223372036854775808"),
              HasSubstr("p.toml: line 1, column "));
}

TEST(PipelineRefusal, SizesThatAreNone) {
  for (const std::string_view size :
       {"\"\"", "\"2\xc2\xa0GiB\"", "\"2 gib\"", "\"2GB\"", "\"-2 GiB\"", "\"2  GiB\"",
        "\"1.5 GiB\"", "\"99999999999 TiB\""}) {
    EXPECT_THAT(refusal_with("\"3 GiB\"", size), HasSubstr("line 30: limits.memory: ")) << size;
    EXPECT_THAT(refusal_with("\"200 GiB\"", size), HasSubstr("line 10: store.retain.max_bytes: "))
        << size;
  }
  EXPECT_THAT(refusal_with("\"3 GiB\"", "\"1 KiB\""),
              HasSubstr("limits.memory: \"1 KiB\" is not within 1 MiB to"));
  EXPECT_THAT(refusal_with("lead_steps = 64", "lead_steps = \"many\""),
              HasSubstr("store.lead_steps: \"many\" is neither a whole number nor \"unlimited\""));
}

TEST(PipelineRefusal, AxesThatAreNone) {
  EXPECT_THAT(refusal_with("dp=4", "dp=131073"),
              HasSubstr("line 13: topology.axes: 262146 ranks; at most 262144"));
  for (const std::string_view axes :
       {"", "dp", "dp=0", "dp=4 dp=2", "ep=4", "dp=4,cp=2", "dp=65536 cp=65536", "dp=-1"}) {
    EXPECT_THAT(refusal_with("pp=1 dp=4 cp=2 tp=1", axes), HasSubstr("line 13: topology.axes: "))
        << axes;
  }
}

TEST(PipelineRefusal, PartsThatFitNowhere) {
  EXPECT_THAT(refusal_with("524_288", "16_000"),
              HasSubstr("line 18: step.max_sample_tokens: 16384 tokens do not fit into a step, "
                        "which has step.tokens = 16000"));
  EXPECT_THAT(refusal_with("16_384", "16_385"),
              HasSubstr("line 18: step.max_sample_tokens: 16385 tokens do not fit: 2 ranks, which "
                        "one part may span with two_level on pp=1 dp=4 cp=2 tp=1, hold 8192 tokens "
                        "each, 16384 together"));
  for (const std::string_view strategy : {"none", "lpt", "kk"}) {
    const std::string text = text_with(plain_pipeline_text(), "two_level", strategy);
    EXPECT_TRUE(parse_plain(text).is_ok()) << parse_plain(text).status().to_string();
    EXPECT_THAT(parse_plain(text_with(text, "16_384", "16_385")).status().to_string(),
                HasSubstr("2 ranks"));
  }
  const std::string hdp = text_with(plain_pipeline_text(), "two_level", "hdp");
  EXPECT_TRUE(parse_plain(text_with(hdp, "16_384", "65_536")).is_ok());
  EXPECT_THAT(parse_plain(text_with(hdp, "16_384", "65_537")).status().to_string(),
              HasSubstr("8 ranks, which one part may span with hdp"));
}

TEST(PipelineRefusal, TwoModuleWithoutAnEncodersCosts) {
  EXPECT_THAT(refusal_with("two_level", "two_module"),
              HasSubstr("line 27: balance.cost_model: select(image).cost(h200-llama7b): has no "
                        "times for pictures"));
}

TEST(PipelineRefusal, Tokenizers) {
  EXPECT_THAT(
      refusal_with("tokenizer = \"bytes\"", "tokenizer = [\"bytes\", \"ids\"]"),
      HasSubstr("line 21: tokens.tokenizer: a table or a text is expected (one for the "
                "whole stream: \"bytes\", \"ids\" or { kind = \"sentencepiece\" }), not a list"));
  EXPECT_THAT(refusal_with("[tokens]", "[[tokens]]"),
              HasSubstr("invalid: p.toml: line 20: tokens: a table is expected (the one text "
                        "tokenizer of a stream, "
                        "and its ids), not a list"));
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"code\"\ntokenizer = \"bytes\""),
              HasSubstr("\"tokenizer\" is no key of source; a stream has one text tokenizer: say "
                        "tokens.tokenizer, for all sources"));
  EXPECT_THAT(refusal_with("tokenizer = \"bytes\"", "tokenizer = \"bytes\"\ntokenizer = \"ids\""),
              HasSubstr("line 22, column"));
  EXPECT_THAT(refusal_with("tokenizer = \"bytes\"", "tokenizer = \"ids\""),
              HasSubstr("line 36: source.fields of 'docs': it has text, and tokens.tokenizer "
                        "\"ids\" makes no ids of it"));
  EXPECT_THAT(refusal_with("vocab = 300", "vocab = 200"),
              HasSubstr("line 22: tokens.vocab: 200; \"bytes\" makes 256 ids"));
  EXPECT_THAT(refusal_with("end = [257]", "end = [300]"),
              HasSubstr("line 23: tokens.end: id 300 is not below tokens.vocab, which is 300"));
  EXPECT_THAT(refusal_with("vocab = 300\n", ""),
              HasSubstr("tokens.end: id 257 is not below tokens.vocab, which is 256"));
}

TEST(PipelineRefusal, ATokenizerWithoutTexts) {
  std::string text = text_with(shortest_pipeline_text(), "data/code.jsonl", "ids/*");
  text = text_with(text, "\"bytes\"", "\"bytes\"\nvocab = 500");
  EXPECT_THAT(parse_plain(text).status().to_string(),
              HasSubstr("line 7: tokens.tokenizer: no source has text; say \"ids\""));
}

TEST(PipelineRefusal, AVocabThatNothingElseTells) {
  std::string text = text_with(plain_pipeline_text(), "vocab = 300\nend = [257]\n", "");
  text = text_with(text,
                   "\"data/code.jsonl\"\nfields = { prompt = \"q\", answer = \"a\" }\n"
                   "loss_on = \"answer\"\n",
                   "\"ids/*\"\n");
  EXPECT_THAT(parse_plain(text).status().to_string(),
              HasSubstr("line 20: tokens.vocab is missing: sources hold ids"));
  EXPECT_TRUE(parse_plain(text_with(text, "\"bytes\"", "\"bytes\"\nvocab = 500")).is_ok());
}

TEST(PipelineRefusal, ModelsOfTokenizers) {
  const auto refusal = [](std::string_view tokenizer) {
    return refusal_with("\"bytes\"", tokenizer);
  };
  EXPECT_THAT(refusal("\"sentencepiece\""),
              HasSubstr("line 21: tokens.tokenizer: it needs a model: { kind = \"sentencepiece\", "
                        "model = \"t.model\" }"));
  EXPECT_THAT(refusal("{ kind = \"sentencepiece\" }"),
              HasSubstr("line 21: tokens.tokenizer.model is missing"));
  EXPECT_THAT(refusal("{ kind = \"sentencepeice\", model = \"bpe.model\" }"),
              HasSubstr("did you mean \"sentencepiece\"?"));
  EXPECT_THAT(refusal("{ kind = \"sentencepiece\", model = \"\" }"),
              HasSubstr("line 21: tokens.tokenizer.model: an empty path"));
  EXPECT_THAT(refusal("{ kind = \"sentencepiece\", model = \"gone.model\" }"),
              HasSubstr("line 21: tokens.tokenizer.model: gone.model: there is no such file"));
  EXPECT_THAT(refusal("{ kind = \"ids\", model = \"bpe.model\" }"),
              HasSubstr("line 21: tokens.tokenizer.model: is of kind = \"sentencepiece\" alone"));
  EXPECT_THAT(refusal("{ kind = \"sentencepiece\", model = \"bpe.model\" }"),
              HasSubstr("line 22: tokens.vocab: 300; bpe.model has 700 pieces"));
  EXPECT_THAT(refusal_with("\"bytes\"\nvocab = 300\nend = [257]",
                           "{ kind = \"sentencepiece\", model = \"bpe.model\" }\nend = [700]"),
              HasSubstr("line 22: tokens.end: id 700 is not below tokens.vocab, which is 700"));
  NamedFiles files = plain_files();
  for (const std::string& content : {std::string(), std::string("{}")}) {
    files.texts["bad.model"] = content;
    const std::string text = text_with(plain_pipeline_text(), "\"bytes\"",
                                       "{ kind = \"sentencepiece\", model = \"bad.model\" }");
    EXPECT_THAT(parse_pipeline(text, "p.toml", files.inputs()).status().to_string(),
                HasSubstr("line 21: tokens.tokenizer.model: bad.model: no sentencepiece model"));
  }
}

TEST(PipelineRefusal, FunctionsOfPython) {
  const auto refusal = [](std::string_view tokenizer) {
    return refusal_with("\"bytes\"", tokenizer);
  };
  EXPECT_THAT(refusal("\"python\""),
              HasSubstr("line 21: tokens.tokenizer: it needs a function: { kind = \"python\", "
                        "function = \"module:function\" }"));
  EXPECT_THAT(refusal("{ kind = \"python\" }"),
              HasSubstr("line 21: tokens.tokenizer.function is missing"));
  EXPECT_THAT(refusal("{ kind = \"python\", function = \"chat\" }"),
              HasSubstr("line 21: tokens.tokenizer.function: 'chat' names no function of Python"));
  EXPECT_THAT(refusal("{ kind = \"python\", function = \"gone.mod:f\" }"),
              HasSubstr("line 21: tokens.tokenizer.function: gone/mod.py: there is no such file; "
                        "the module lies beside the pipeline's file"));
  EXPECT_THAT(refusal("{ kind = \"python\", function = \"chat:f\", files = [\"gone.json\"] }"),
              HasSubstr("line 21: tokens.tokenizer.files: gone.json: there is no such file"));
  EXPECT_THAT(refusal("{ kind = \"python\", function = \"chat:f\", files = [1] }"),
              HasSubstr("line 21: tokens.tokenizer.files: a file is expected, not"));
  EXPECT_THAT(refusal("{ kind = \"bytes\", function = \"chat:f\" }"),
              HasSubstr("line 21: tokens.tokenizer.function: is of kind = \"python\" alone"));
  EXPECT_THAT(refusal("{ kind = \"bytes\", files = [\"bpe.model\"] }"),
              HasSubstr("line 21: tokens.tokenizer.files: is of kind = \"python\" alone"));
  EXPECT_THAT(refusal("{ kind = \"python\", function = \"chat:f\", model = \"bpe.model\" }"),
              HasSubstr("line 21: tokens.tokenizer.model: is of kind = \"sentencepiece\" alone"));
  EXPECT_THAT(
      refusal_with("\"bytes\"\nvocab = 300", "{ kind = \"python\", function = \"chat:f\" }"),
      HasSubstr("tokens.vocab is missing: a function of Python makes ids, and only it tells "
                "how many there are"));
  const std::string python =
      text_with(plain_pipeline_text(), "\"bytes\"", "{ kind = \"python\", function = \"chat:f\" }");
  EXPECT_TRUE(parse_plain(text_with(python, "loss_on = \"answer\"", "loss_on = \"mask\"")).is_ok());
  EXPECT_THAT(parse_plain(text_with(text_with(python, "{ text = \"body\" }", "{ tokens = \"t\" }"),
                                    "split = {", "loss_on = \"mask\"\nsplit = {"))
                  .status()
                  .to_string(),
              HasSubstr("source.loss_on: \"mask\" needs fields"));
}

TEST(PipelineRefusal, WhatIsNotBuiltYetSaysSo) {
  const auto file = [](std::string_view path) {
    return refusal_with("\"data/code.jsonl\"", fmt::format("\"{}\"", path));
  };
  EXPECT_THAT(file("data/x.arrow"),
              HasSubstr("line 42: source.files: \"data/x.arrow\" is arrow, which is not built yet; "
                        "there are jsonl, megatron, parquet, tar, text"));
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"code\"\nformat = \"arrow\""),
              HasSubstr("line 42: source.format: arrow is not built yet"));
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"code\"\nformat = \"megatorn\""),
              HasSubstr("source.format: \"megatorn\" is unknown; did you mean \"megatron\"?"));
  EXPECT_THAT(refusal_with("lead_steps = 64", "codec = \"zstd\""),
              HasSubstr("store.codec: zstd is not built yet; raw is"));
}

TEST(PipelineRefusal, SettingsOfS3WithoutIt) {
  EXPECT_THAT(refusal_with("lead_steps = 64", "region = \"eu\""),
              HasSubstr("line 9: store.region: is of s3:// alone, and url is \"./stream\""));
  EXPECT_THAT(refusal_with("\"./stream\"", "\"\""), HasSubstr("store.url: an empty URL"));
  const std::string s3 =
      text_with(plain_pipeline_text(), "\"./stream\"", "\"s3://b/p\"\nregion = \"eu\"");
  EXPECT_TRUE(parse_plain(s3).is_ok());
}

// --- what is no pipeline at all ----------------------------------------------------------------

TEST(PipelineRefusal, AnEmptyFileLacksWhatHasNoDefault) {
  const std::string refusal = parse_plain("").status().to_string();
  for (const std::string_view key :
       {"store.url", "step.tokens", "step.max_sample_tokens", "tokens.tokenizer", "source"}) {
    EXPECT_THAT(refusal, HasSubstr(fmt::format("line 1: {} is missing", key)));
  }
}

TEST(PipelineRefusal, BytesThatAreNoToml) {
  EXPECT_THAT(parse_plain(std::string_view("\x7f\x45LF\x02\0\0\x01", 8)).status().to_string(),
              HasSubstr("invalid: p.toml: line 1, column "));
  EXPECT_THAT(parse_plain("seed = 1\n# \xff\xfe").status().to_string(), HasSubstr("line 2"));
  EXPECT_THAT(parse_plain("seed = 1\nseed = 2\n").status().to_string(), HasSubstr("line 2"));
  EXPECT_THAT(parse_plain("[run]\n[run]\n").status().to_string(), HasSubstr("line 2"));
  EXPECT_THAT(parse_plain("seed = \"\n").status().to_string(), HasSubstr("line 1"));
  const std::string deep(100'000, '[');
  EXPECT_THAT(parse_plain("seed = " + deep).status().to_string(), HasSubstr("line 1"));
}

TEST(PipelineRefusal, ALineOfTenMegabytes) {
  const std::string line(std::size_t{10} << 20, 'x');
  EXPECT_TRUE(parse_plain("# " + line + '\n' + std::string(plain_pipeline_text())).is_ok());
  const std::string refusal = refusal_with("\"docs\"", '"' + line + '"');
  EXPECT_THAT(refusal, HasSubstr("line 34: source.name: "));
  EXPECT_LT(refusal.size(), 1'000u);
  EXPECT_LT(refusal_with("seed", line).size(), 1'000u);
  EXPECT_LT(refusal_with("./stream\"", line + "\"\nregion = \"eu\"").size(), 1'000u);
  EXPECT_THAT(parse_plain(std::string(kPipelineMaxBytes + 1, ' ')).status().to_string(),
              HasSubstr("p.toml: 33554433 bytes; a pipeline file has at most 33554432"));
}

TEST(PipelineRefusal, MarksOfOtherSystemsAreRead) {
  const std::string text(plain_pipeline_text());
  EXPECT_TRUE(parse_plain("\xef\xbb\xbf" + text).is_ok());
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  ASSERT_TRUE(parse_plain(crlf).is_ok()) << parse_plain(crlf).status().to_string();
  EXPECT_EQ(parse_plain(crlf)->config, parse_plain(text)->config);
}

}  // namespace
}  // namespace batchloom::control
