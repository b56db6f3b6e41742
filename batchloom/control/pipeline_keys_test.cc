// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(PipelineKeys, ParentsComeBeforeWhatTheyHold) {
  std::set<std::string_view> seen;
  for (const PipelineKey& key : pipeline_keys()) {
    EXPECT_TRUE(key.parent().empty() || seen.contains(key.parent())) << key.path;
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    EXPECT_EQ(find_pipeline_key(key.path), &key);
  }
  EXPECT_EQ(find_pipeline_key("step.token"), nullptr);
}

// --- a wrong type under every key --------------------------------------------------------------

constexpr std::pair<TomlType, std::string_view> kValues[] = {
    {TomlType::kTable, "{ x = 1 }"}, {TomlType::kList, "[]"},      {TomlType::kText, "'x'"},
    {TomlType::kWhole, "7"},         {TomlType::kFraction, "1.5"}, {TomlType::kTruth, "true"},
    {TomlType::kTime, "1979-05-27"}};

struct KeyedText {
  std::string text;
  std::uint32_t line = 0;  ///< Where the key stands.
};

/// The value under a key that is not a section's own: its assignment in the section.
std::string assignment_of(const PipelineKey& key, std::string_view value) {
  const std::string_view parent = key.parent();
  if (parent.find('.') == std::string_view::npos) return fmt::format("{} = {}", key.name(), value);
  const std::string_view table = parent.substr(parent.find('.') + 1);
  if (table == "weight") {
    const std::string rest = key.name() == "step"    ? "value = 1"
                             : key.name() == "value" ? "step = 0"
                                                     : "step = 0, value = 1";
    return fmt::format("weight = [{{ {}, {} = {} }}]", rest, key.name(), value);
  }
  return fmt::format("{} = {{ {} = {} }}", table, key.name(), value);
}

/// A whole pipeline in which the key has this value, and nothing else stands in its section.
KeyedText text_with_key(const PipelineKey& key, std::string_view value) {
  const std::string section(key.path.substr(0, key.path.find('.')));
  if (section == key.path) return {fmt::format("{} = {}\n", key.path, value), 1};
  return {fmt::format("{}\n{}\n", section == "source" ? "[[source]]" : '[' + section + ']',
                      assignment_of(key, value)),
          2};
}

TEST(PipelineKeys, AWrongTypeIsRefusedWithLineAndKey) {
  for (const PipelineKey& key : pipeline_keys()) {
    for (const auto& [type, value] : kValues) {
      const KeyedText keyed = text_with_key(key, value);
      const auto parsed = parse_plain(keyed.text);
      ASSERT_FALSE(parsed.is_ok()) << keyed.text;
      const std::string expected = fmt::format("line {}: {}: ", keyed.line, key.path);
      const std::string told = fmt::format(", not {}", to_string(type));
      const std::string refusal = parsed.status().to_string();
      const bool refused =
          refusal.find(expected) != std::string::npos && refusal.find(told) != std::string::npos;
      EXPECT_EQ(refused, !key.types.has(type)) << keyed.text << refusal;
    }
  }
}

TEST(PipelineKeys, AnUnknownNameIsRefusedInEveryTable) {
  std::set<std::string> tables = {""};
  for (const PipelineKey& key : pipeline_keys()) tables.insert(std::string(key.parent()));
  EXPECT_EQ(tables.size(), 15u);
  for (const std::string& table : tables) {
    const std::string path = table.empty() ? "unheard-of" : table + ".unheard-of";
    const PipelineKey unknown{path, {TomlType::kWhole}, KeyEffect::kFree, ""};
    const KeyedText keyed = text_with_key(unknown, "1");
    EXPECT_THAT(parse_plain(keyed.text).status().to_string(),
                HasSubstr(fmt::format("line {}: \"unheard-of\" is no key", keyed.line)))
        << keyed.text;
  }
}

TEST(PipelineKeys, HintsNameWhatIsNear) {
  EXPECT_EQ(spelling_hint("step", "token"), "did you mean 'tokens'?");
  EXPECT_EQ(spelling_hint("", "sources"), "did you mean 'source'?");
  EXPECT_EQ(spelling_hint("store", "strategy"), "did you mean 'balance.strategy'?");
  EXPECT_EQ(spelling_hint("run", "abcdef"), "there may be steps, split");
}

// --- the effect of every key -------------------------------------------------------------------

/// Another value for a key of the plain pipeline, and the line of the membership that shows it.
struct KeyChange {
  std::string_view key;
  std::string_view stretch;
  std::string_view instead;
  std::string_view shown = {};
};

constexpr std::string_view kPair = "{ prompt = \"q\", answer = \"a\" }";
constexpr std::string_view kUrl = "\"./stream\"";

const std::vector<KeyChange>& key_changes() {
  static const std::vector<KeyChange> changes = {
      {"seed", "seed = 17", "seed = 18", "seed"},
      {"run.steps", "10_000", "10"},
      {"run.split", "split = \"train\"", "split = \"valid\"", "run.split"},
      {"store.url", kUrl, "\"./other\""},
      {"store.lead_steps", "64", "\"unlimited\""},
      {"store.codec", "lead_steps", "codec = \"raw\"\nlead_steps"},
      {"store.retain", "retain = { max_bytes = \"200 GiB\" }", ""},
      {"store.retain.max_bytes", "200 GiB", "1 TiB"},
      {"store.endpoint", kUrl, "\"s3://b\"\nendpoint = \"http://x\""},
      {"store.region", kUrl, "\"s3://b\"\nregion = \"eu\""},
      {"store.profile", kUrl, "\"s3://b\"\nprofile = \"me\""},
      {"topology.axes", "dp=4", "dp=2"},
      {"topology.capacity", "8_192", "9_000"},
      {"step.tokens", "524_288", "524_289", "step.tokens"},
      {"step.samples", "tokens = 524_288", "samples = 64", "step.samples"},
      {"step.max_sample_tokens", "16_384", "16_000", "step.max_sample_tokens"},
      {"step.over_length", "16_384", "16_384\nover_length = \"drop\"", "step.over_length"},
      {"tokens.vocab", "300", "301", "tokens.vocab"},
      {"tokens.begin", "end = ", "begin = [256]\nend = ", "tokens.begin"},
      {"tokens.end", "[257]", "[257, 258]", "tokens.end"},
      {"balance.strategy", "two_level", "hdp"},
      {"balance.cost_model", "h200-llama7b", "bytescale-fig6"},
      {"balance.min_share", "[balance]", "[balance]\nmin_share = 1"},
      {"balance.offload", "[balance]", "[balance]\noffload = false"},
      {"limits.memory", "3 GiB", "4 GiB"},
      {"limits.workers", "\"auto\"", "3"},
      {"limits.bad_records", "workers", "bad_records = 3\nworkers"},
      {"source.name", "name = \"docs\"", "name = \"papers\"", "sources"},
      {"source.files", "data/docs-*", "data/docs-1*", "source.docs.files"},
      {"source.format",
       "data/code.jsonl\"\nfields = { prompt = \"q\", answer = \"a\" }\n"
       "loss_on = \"answer\"",
       "ids/*\"", "source.code.format"},
      {"source.fields", kPair, "{ prompt = \"q\", answer = \"b\" }", "source.code.fields"},
      {"source.fields.text", "\"body\"", "\"title\"", "source.docs.fields"},
      {"source.fields.prompt", "\"q\"", "\"question\"", "source.code.fields"},
      {"source.fields.answer", "\"a\"", "\"b\"", "source.code.fields"},
      {"source.fields.tokens", "{ text = \"body\" }", "{ tokens = \"t\" }", "source.docs.fields"},
      {"source.fields.loss_mask", "{ text = \"body\" }", "{ tokens = \"t\", loss_mask = \"m\" }",
       "source.docs.fields"},
      {"source.loss_on", "loss_on = \"answer\"", "loss_on = \"all\"", "source.code.loss_on"},
      {"source.split", "train = 999", "train = 9", "source.docs.split"},
      {"source.split_by", "split = { train = 999, valid = 1 }",
       "split = { train = 999, valid = 1 }\nsplit_by = \"number\"", "source.docs.split_by"},
      {"source.split_by.field", "split = { train = 999, valid = 1 }",
       "split = { train = 999, valid = 1 }\nsplit_by = { field = \"author\" }",
       "source.docs.split_by"},
      {"source.weight", "weight = 0.5", "weight = 0.6", "source.docs.weight"},
      {"source.weight.step", "2000", "2001", "source.code.weight"},
      {"source.weight.value", "0.4", "0.5", "source.code.weight"},
      {"source.weight.ramp", "\"linear\"", "\"cosine\"", "source.code.weight"},
      {"source.order", "order = \"file\"", "order = \"random\"", "source.code.order"},
      {"source.exhausted", "\"repeat\"\nepochs = 3", "\"drop\"", "source.code.exhausted"},
      {"source.epochs", "epochs = 3", "epochs = 4", "source.code.epochs"},
  };
  return changes;
}

/// Of the plain pipeline with pictures.
const std::vector<KeyChange>& picture_changes() {
  static const std::vector<KeyChange> changes = {
      {"image.patch", "patch = 16", "patch = 8", "image.patch"},
      {"image.merge", "merge = 2", "merge = 1", "image.merge"},
      {"image.max_patches", "max_patches = 64", "max_patches = 65", "image.max_patches"},
      {"image.token", "token = 299", "token = 298", "image.token"},
      {"source.fields.image", "image = \"jpg\"", "image = \"png\"", "source.code.fields"},
  };
  return changes;
}

TEST(PipelineKeys, ThoseOfPicturesDecideMembership) {
  const std::string text = picture_pipeline_text();
  const Membership before = membership_of_plain(text);
  for (const KeyChange& change : picture_changes()) {
    EXPECT_THAT(
        differences(before, membership_of_plain(text_with(text, change.stretch, change.instead))),
        ElementsAre(StartsWith(fmt::format("{}: ", change.shown))))
        << change.key;
  }
}

TEST(PipelineKeys, EveryKeyDecidesMembershipOrIsFree) {
  const Membership before = membership_of_plain(plain_pipeline_text());
  // What the tokenizer is shows only together with other sources: MembershipTest looks at it.
  std::set<std::string_view> tried = {"tokens.tokenizer", "tokens.tokenizer.kind",
                                      "tokens.tokenizer.model", "tokens.tokenizer.function",
                                      "tokens.tokenizer.files"};
  for (const KeyChange& change : key_changes()) {
    const PipelineKey* key = find_pipeline_key(change.key);
    ASSERT_NE(key, nullptr) << change.key;
    tried.insert(change.key);
    const auto told = differences(
        before,
        membership_of_plain(text_with(plain_pipeline_text(), change.stretch, change.instead)));
    EXPECT_EQ(key->effect == KeyEffect::kMembership, !change.shown.empty()) << change.key;
    if (change.shown.empty()) {
      EXPECT_THAT(told, IsEmpty()) << change.key;
    } else {
      EXPECT_THAT(told, Contains(StartsWith(fmt::format("{}: ", change.shown)))) << change.key;
    }
  }
  for (const auto& change : picture_changes()) tried.insert(change.key);
  for (const PipelineKey& key : pipeline_keys()) {
    const bool has_children = !names_below(key.path).empty();
    EXPECT_EQ(key.effect == KeyEffect::kSection, has_children && key.parent().empty()) << key.path;
    if (key.effect == KeyEffect::kSection || !key.built) continue;
    EXPECT_TRUE(tried.contains(key.path)) << key.path;
  }
}

// --- its page ----------------------------------------------------------------------------------

/// The second cell of each row of a table whose first cell is `code`.
std::map<std::string, std::string> rows_of(const std::string& page) {
  std::map<std::string, std::string> rows;
  std::ifstream in(page);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `")) continue;
    const std::size_t end = line.find("` | ");
    if (end == std::string::npos) continue;
    const std::string rest = line.substr(end + 4);
    rows[line.substr(3, end - 3)] = rest.substr(0, rest.find(" |"));
  }
  return rows;
}

TEST(PipelineKeys, ThePageListsEveryKeyAndItsEffect) {
  const auto rows = rows_of(BATCHLOOM_DOCS "/formats/pipeline_toml.md");
  std::set<std::string> expected;
  for (const PipelineKey& key : pipeline_keys()) {
    if (key.effect == KeyEffect::kSection) continue;
    expected.insert(std::string(key.path));
    const auto row = rows.find(std::string(key.path));
    ASSERT_NE(row, rows.end()) << key.path;
    const std::string_view effect = !key.built                             ? "not built yet"
                                    : key.effect == KeyEffect::kMembership ? "membership"
                                                                           : "free";
    EXPECT_EQ(row->second, effect) << key.path;
  }
  for (const auto& [path, effect] : rows) EXPECT_TRUE(expected.contains(path)) << path;
}

}  // namespace
}  // namespace batchloom::control
