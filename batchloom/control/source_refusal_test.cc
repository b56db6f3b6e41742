// SPDX-License-Identifier: Apache-2.0
// What of [[source]] is refused before anything runs, and in which words.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using testing::HasSubstr;

TEST(SourceRefusal, AShardIsReadInOneWay) {
  EXPECT_THAT(refusal_with("\"data/code.jsonl\"", "\"data/docs-1*\""),
              HasSubstr("line 42: source.files of 'code': \"data/docs-1.jsonl\" is read by source "
                        "'docs', too, with other fields, labels or split_by; let one "
                        "of them have a copy"));
  EXPECT_EQ(
      refusal_with("\"data/code.jsonl\"\nfields = { prompt = \"q\", answer = \"a\" }\nloss_on = "
                   "\"answer\"",
                   "\"data/docs-1*\"\nfields = { text = \"body\" }"),
      "accepted");
}

TEST(SourceRefusal, Weights) {
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = -1"),
              HasSubstr("line 38: source.weight: -1 is not within 0 to 100000"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = nan"), HasSubstr("is not within"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = []"),
              HasSubstr("line 38: source.weight: a schedule of 0 points"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = [1]"),
              HasSubstr("{ step, value, ramp } is expected as an element, not a whole number"));
  EXPECT_THAT(refusal_with("step = 2000", "step = 0"),
              HasSubstr("line 46: source.weight: a schedule's point at step 0 follows one at"));
  EXPECT_THAT(refusal_with("value = 0.1 }", "value = 0.1, ramp = \"cosine\" }"),
              HasSubstr("ramps to its first point"));
}

TEST(SourceRefusal, PointsOfAWeightHaveTheirOwnLines) {
  EXPECT_THAT(
      refusal_with("weight = 0.5", "weight = [\n  { step = 0, value = 1 },\n  { step = 9 },\n]"),
      HasSubstr("line 40: source.weight.value is missing"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = [\n  { step = 0, value = -1 },\n]"),
              HasSubstr("line 39: source.weight.value: -1 is not within"));
}

TEST(SourceRefusal, StepsInWhichNothingWeighs) {
  const std::string text = text_with(plain_pipeline_text(), "weight = 0.5", "weight = 0");
  EXPECT_TRUE(parse_plain(text).is_ok());
  EXPECT_THAT(parse_plain(text_with(text, "value = 0.1", "value = 0")).status().to_string(),
              HasSubstr("line 38: source.weight of 'docs': of split train: in step 0 no source"));
  EXPECT_THAT(parse_plain(text_with(text, "value = 0.4, ramp = \"linear\"", "value = 0"))
                  .status()
                  .to_string(),
              HasSubstr("in step 2000 no source"));
  // code has nothing of this split, whatever it weighs.
  EXPECT_THAT(parse_plain(text_with(text, "\"train\"", "\"valid\"")).status().to_string(),
              HasSubstr("of split valid: in step 0 no source"));
}

TEST(SourceRefusal, ASplitWhoseSharesAreAllNothing) {
  const std::string text = text_with(plain_pipeline_text(), "valid = 1", "valid = 0, test = 1");
  EXPECT_TRUE(parse_plain(text_with(text, "\"train\"", "\"test\"")).is_ok());
  EXPECT_THAT(parse_plain(text_with(text, "\"train\"", "\"valid\"")).status().to_string(),
              HasSubstr("run.split: no source has a share called \"valid\"; known: test, train"));
}

TEST(SourceRefusal, Sources) {
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"docs\""),
              HasSubstr("line 41: source.name of 'docs': the source of line 33 is called so, too"));
  for (const std::string_view name : {"", "Docs", "a b", "-a", "a.b", "a/b", "\xc3\xa4"}) {
    EXPECT_THAT(refusal_with("\"docs\"", fmt::format("\"{}\"", name)),
                HasSubstr("line 34: source.name: source '"))
        << name;
  }
  EXPECT_THAT(refusal_with("data/docs-*.jsonl", "data/dosc-*.jsonl"),
              HasSubstr("line 35: source.files: \"data/dosc-*.jsonl\" matches no file"));
  EXPECT_THAT(refusal_with("[\"data/docs-*.jsonl\"]", "[]"), HasSubstr("an empty list"));
  EXPECT_THAT(refusal_with("[\"data/docs-*.jsonl\"]", "[7]"),
              HasSubstr("a pattern is expected, not a whole number"));
  EXPECT_THAT(refusal_with("[\"data/docs-*.jsonl\"]", "[\"\"]"), HasSubstr("an empty pattern"));
  EXPECT_THAT(
      refusal_with("data/docs-*.jsonl", "s3://b/x.jsonl"),
      HasSubstr("line 35: source.files: \"s3://b/x.jsonl\": sources in object stores are not "
                "built yet"));
  EXPECT_THAT(refusal_with("[\"data/docs-*.jsonl\"]", "[\"data/docs-*.jsonl\", \"data/docs-1*\"]"),
              HasSubstr("\"data/docs-1.jsonl\" is matched by \"data/docs-*.jsonl\" and again by "
                        "\"data/docs-1*\""));
  EXPECT_THAT(refusal_with("exhausted = \"repeat\"\n", ""),
              HasSubstr("line 47: source.epochs: passes need exhausted = \"repeat\""));
  EXPECT_THAT(refusal_with("{ train = 999, valid = 1 }", "{}"),
              HasSubstr("source.split: no split has a share above 0"));
  EXPECT_THAT(refusal_with("{ train = 999, valid = 1 }", "{ train = 0.9 }"),
              HasSubstr("a whole number is expected as the share of train, not a fraction"));
  EXPECT_THAT(refusal_with("{ train = 999, valid = 1 }", "{ \"a b\" = 1 }"),
              HasSubstr("split 'a b' is not a name"));
  EXPECT_THAT(refusal_with("valid = 1 }", "valid = 1 }\nsplit_by = \"contents\""),
              HasSubstr("line 38: source.split_by: \"contents\" is unknown; did you mean "
                        "\"content\"?"));
  EXPECT_THAT(refusal_with("valid = 1 }", "valid = 1 }\nsplit_by = \"field\""),
              HasSubstr("source.split_by: which one? { field = \"author\" }"));
  EXPECT_THAT(refusal_with("valid = 1 }", "valid = 1 }\nsplit_by = {}"),
              HasSubstr("source.split_by.field is missing"));
  EXPECT_THAT(refusal_with("\"data/docs-*.jsonl\"]\nfields = { text = \"body\" }",
                           "\"ids/*\"]\nsplit_by = { field = \"author\" }"),
              HasSubstr("source.split_by: megatron has no fields"));
}

TEST(SourceRefusal, APipelineWithoutSources) {
  const std::string_view text = plain_pipeline_text();
  const std::string without(text.substr(0, text.find("[[source]]")));
  EXPECT_THAT(parse_plain(without).status().to_string(),
              HasSubstr("line 1: source is missing: [[source]] for each source"));
  EXPECT_THAT(parse_plain("source = []\n" + without).status().to_string(),
              HasSubstr("line 1: source: an empty list"));
  EXPECT_THAT(parse_plain("source = [7]\n" + without).status().to_string(),
              HasSubstr("a table is expected as an element, not a whole number"));
}

TEST(SourceRefusal, Fields) {
  const auto refusal = [](std::string_view fields) {
    return refusal_with("{ text = \"body\" }", fields);
  };
  for (const std::string_view fields :
       {"{}", "{ text = \"a\", tokens = \"b\" }", "{ text = \"a\", prompt = \"q\" }",
        "{ loss_mask = \"m\" }"}) {
    EXPECT_THAT(refusal(fields), HasSubstr("line 36: source.fields: either { text }")) << fields;
  }
  EXPECT_THAT(refusal("{ prompt = \"q\" }"), HasSubstr("prompt and answer go together"));
  EXPECT_THAT(refusal("{ text = \"t\", loss_mask = \"m\" }"),
              HasSubstr("loss_mask goes with tokens"));
  EXPECT_THAT(refusal("{ prompt = \"x\", answer = \"x\" }"),
              HasSubstr("line 36: source.fields of 'docs': "));
  EXPECT_THAT(refusal("{ text = \"\" }"), HasSubstr("source.fields.text: an empty name"));
  EXPECT_THAT(refusal_with("\"data/code.jsonl\"", "\"data/odd.name\"\nformat = \"text\""),
              HasSubstr("source.fields: a file of text has no fields; leave them out"));
  EXPECT_THAT(refusal_with("{ prompt = \"q\", answer = \"a\" }", "{ text = \"t\" }"),
              HasSubstr("source.loss_on: \"answer\" needs fields"));
  EXPECT_THAT(refusal_with("loss_on = \"answer\"", "loss_on = \"mask\""),
              HasSubstr("source.loss_on: \"mask\" needs fields"));
  EXPECT_THAT(refusal_with("\"data/code.jsonl\"", "\"ids/*\""),
              HasSubstr("source.fields: a Megatron data set has no fields"));
}

TEST(SourceRefusal, PicturesThatCannotBe) {
  EXPECT_THAT(refusal_with("{ text = \"body\" }", "{ image = \"jpg\", text = \"txt\" }"),
              HasSubstr("source.fields.image: jsonl holds no pictures; tar and parquet do"));
  EXPECT_THAT(refusal_with("[balance]", "[image]\npatch = 16\n[balance]"),
              HasSubstr("image: no source has pictures; name their field"));
  const auto refusal = [](std::string_view stretch, std::string_view instead) {
    return parse_plain(text_with(picture_pipeline_text(), stretch, instead)).status().to_string();
  };
  ASSERT_EQ(refusal("patch = 16", "patch = 16"), Status::ok().to_string());
  EXPECT_THAT(refusal("token = 299", ""), HasSubstr("line 25: image.token is missing"));
  EXPECT_THAT(
      refusal("token = 299", "token = 255"),
      HasSubstr("line 29: image.token: 255; texts have it, for \"bytes\" makes the ids below"));
  EXPECT_THAT(refusal("token = 299", "token = 300"),
              HasSubstr("image.token: 300 is outside of the vocabulary of 300 ids"));
  EXPECT_THAT(refusal("token = 299", "token = 257"),
              HasSubstr("image.token: 257 is put around records, too"));
  EXPECT_THAT(refusal("max_patches = 64", "max_patches = 65540"),
              HasSubstr("image.max_patches: a picture may have 16385 tokens with tokens.begin, and "
                        "no picture is cut: step.max_sample_tokens is 16384"));
  EXPECT_THAT(refusal("max_patches = 64", "max_patches = 3"),
              HasSubstr("image.max_patches: 3 is not within 4 to 1048576"));
  EXPECT_THAT(
      refusal("\"jpg\"", "\"q\""),
      HasSubstr("source.fields of 'code': fields: 'q' is named as a picture and as a text"));
  EXPECT_THAT(refusal("prompt = \"q\", answer = \"a\" }\nloss_on = \"answer\"", "tokens = \"t\" }"),
              HasSubstr("source.fields: image goes with text, or with prompt and answer"));
}

TEST(SourceRefusal, FilesWhoseFormatIsUnclear) {
  EXPECT_THAT(
      refusal_with("data/code.jsonl", "data/odd.name"),
      HasSubstr("the name of \"data/odd.name\" tells no format; say it: format = \"jsonl\""));
  const std::string odd = text_with(plain_pipeline_text(), "data/code.jsonl", "data/odd.name");
  EXPECT_TRUE(parse_plain(text_with(odd, "name = \"code\"", "name = \"code\"\nformat = \"jsonl\""))
                  .is_ok());
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"code\"\nformat = \"megatron\""),
              HasSubstr("\"data/code.jsonl\" is jsonl by its name, and format is \"megatron\""));
  EXPECT_THAT(refusal_with("\"data/code.jsonl\"", "[\"data/code.jsonl\", \"ids/*\"]"),
              HasSubstr("a source has one format"));
}

}  // namespace
}  // namespace batchloom::control
