// SPDX-License-Identifier: Apache-2.0
// Which split a record is of, with files as a run finds them.
#include "batchloom/control/source_split.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/control/pipeline_text.h"
#include "batchloom/control/prepared_sources.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"

namespace batchloom::control {
namespace {

using testing::HasSubstr;

/// A record: who wrote it, and what.
struct Letter {
  std::string author;
  std::string text;
};

std::vector<Letter> letters(std::size_t count) {
  std::vector<Letter> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({fmt::format("author {}", mix64(i) % 40), fmt::format("letter {}", i)});
  }
  return all;
}

template <class T>
void shuffle_all(Random& random, std::vector<T>& values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

using Texts = std::multiset<std::string>;

class SourceSplitTest : public testing::Test {
 protected:
  SourceSplitTest() {
    config_.tokens.vocab = 300;
    config_.tokens.end = {299};
    config_.step = {.unit = planning::StepUnit::kTokens, .units = 4096, .max_sample_tokens = 256};
    source().name = "letters";
    source().fields = sources::TextField{"text"};
    source().split = {{"test", 1}, {"train", 6}, {"valid", 3}};
  }

  SourceConfig& source() {
    if (config_.sources.empty()) config_.sources.emplace_back();
    return config_.sources[0];
  }

  /// Puts them into files of so many records.
  void write(std::vector<Letter> all, std::size_t of_a_file) {
    source().paths.clear();
    ++layouts_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % of_a_file == 0) {
        source().paths.push_back(fmt::format("{}/{}-{}.jsonl", scratch_.path(), layouts_, i));
      }
      std::ofstream(source().paths.back(), std::ios::app)
          << fmt::format("{{\"text\": \"{}\", \"author\": \"{}\"}}\n", all[i].text, all[i].author);
    }
    letters_ = std::move(all);
  }

  Result<std::unique_ptr<PreparedSources>> open() {
    return PreparedSources::open(config_, *ops_, *runtime_, {}, {});
  }

  Texts texts_of(const std::string& split) {
    config_.run.split = split;
    const auto opened = open();
    EXPECT_TRUE(opened.is_ok()) << opened.status().to_string();
    Texts texts;
    for (std::size_t i = 0; i < letters_.size(); ++i) {
      const auto tokens =
          (*opened)->set().tokens(model::SourceId(0), model::RecordIndex(i)).value();
      if (tokens > 0) texts.insert(letters_[i].text);
    }
    return texts;
  }

  std::map<std::string, Texts> all_splits() {
    std::map<std::string, Texts> splits;
    for (const auto& [name, share] : source().split) splits[name] = texts_of(name);
    return splits;
  }

  objstore::ScratchFolder scratch_;
  const std::unique_ptr<objstore::FileOps> ops_ = objstore::make_posix_file_ops();
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  PipelineConfig config_;
  std::vector<Letter> letters_;
  int layouts_ = 0;
};

TEST_F(SourceSplitTest, FilesThatAreCutOtherwiseHaveTheSameSplits) {
  Random random(7);
  for (const SplitBy& by : {SplitBy{}, SplitBy{SplitRule::kField, "author"}}) {
    source().split_by = by;
    std::vector<Letter> all = letters(600);
    write(all, 600);
    const auto before = all_splits();
    Texts together;
    for (const auto& [name, texts] : before) together.insert(texts.begin(), texts.end());
    EXPECT_EQ(together.size(), 600U);
    EXPECT_EQ(std::set(together.begin(), together.end()).size(), 600U) << "none is of two";
    for (const std::size_t of_a_file : {1'000U, 130U, 41U}) {
      shuffle_all(random, all);
      write(all, of_a_file);
      EXPECT_EQ(all_splits(), before) << toml_split_by(by) << ", " << of_a_file << " in a file";
    }
  }
}

TEST_F(SourceSplitTest, ByNumberTheyHaveOthers) {
  source().split_by.rule = SplitRule::kNumber;
  std::vector<Letter> all = letters(600);
  write(all, 600);
  const auto before = all_splits();
  std::ranges::reverse(all);
  write(all, 600);
  EXPECT_NE(all_splits(), before);
  EXPECT_FALSE(std::filesystem::exists(source().paths[0] + ".blkeys"));
}

TEST_F(SourceSplitTest, EqualRecordsFallTogether) {
  std::vector<Letter> all = letters(300);
  for (std::size_t i = 0; i < 300; ++i) all.push_back({"a copyist", all[i].text});
  write(all, 70);
  for (const auto& [name, texts] : all_splits()) {
    for (const std::string& text : texts) EXPECT_EQ(texts.count(text), 2U) << name << ": " << text;
  }
}

TEST_F(SourceSplitTest, RecordsOfOneAuthorFallTogether) {
  source().split_by = {SplitRule::kField, "author"};
  write(letters(600), 100);
  std::map<std::string, std::set<std::string>> splits_of_author;
  for (const auto& [name, texts] : all_splits()) {
    for (const Letter& letter : letters_) {
      if (texts.contains(letter.text)) splits_of_author[letter.author].insert(name);
    }
  }
  EXPECT_EQ(splits_of_author.size(), 40U);
  for (const auto& [author, splits] : splits_of_author) EXPECT_EQ(splits.size(), 1U) << author;
}

TEST_F(SourceSplitTest, AllSourcesAgree) {
  write(letters(300), 50);
  const Texts before = texts_of("valid");
  source().name = "the same under another name";
  config_.seed = 99;
  EXPECT_EQ(texts_of("valid"), before);
}

TEST_F(SourceSplitTest, ARecordWithoutTheFieldIsNamed) {
  source().split_by = {SplitRule::kField, "author"};
  write(letters(30), 10);
  std::ofstream(source().paths[1], std::ios::app) << "{\"text\": \"anonymous\"}\n";
  const Status refused = open().status();
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(refused.to_string(), HasSubstr(fmt::format("split keys of {}: ", source().paths[1])));
  EXPECT_THAT(refused.to_string(), HasSubstr("record 10 at offset"));
  EXPECT_THAT(refused.to_string(), HasSubstr("'author'"));
}

TEST_F(SourceSplitTest, ABadRecordNeedsNoField) {
  source().split_by = {SplitRule::kField, "author"};
  write(letters(30), 10);
  const Texts before = texts_of("train");
  std::ofstream(source().paths[2], std::ios::app) << "no JSON\n";
  EXPECT_EQ(texts_of("train"), before);
}

TEST_F(SourceSplitTest, KeysOfNoUseAreMadeAnew) {
  write(letters(60), 20);
  const auto before = all_splits();
  const std::string keys = source().paths[0] + ".blkeys";
  std::ofstream(keys, std::ios::trunc) << "spoilt";
  EXPECT_EQ(all_splits(), before);
  source().split_by = {SplitRule::kField, "author"};
  EXPECT_NE(all_splits(), before);
  source().split_by = {};
  EXPECT_EQ(all_splits(), before);
}

TEST_F(SourceSplitTest, AMegatronPairIsDividedAsTheSameIdsInLines) {
  config_.tokens = {.tokenizer = TokenizerKind::kIds, .vocab = 70'000};
  constexpr std::uint64_t kRecords = 200;
  const std::string stem = scratch_.path() + "/pair";
  std::ofstream lines(scratch_.path() + "/lines.jsonl");
  std::ofstream data(stem + ".bin", std::ios::binary);
  Bytes sizes;
  Bytes pointers;
  Bytes documents;
  const auto put = [](Bytes& bytes, auto value) {
    bytes.resize(bytes.size() + sizeof(value));
    store_le(value, bytes.data() + bytes.size() - sizeof(value));
  };
  put(documents, std::uint64_t{0});
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const std::uint32_t ids[] = {static_cast<std::uint32_t>(mix64(i) % 70'000),
                                 static_cast<std::uint32_t>(i)};
    lines << fmt::format("{{\"ids\": [{}, {}]}}\n", ids[0], ids[1]);
    data << as_text(std::as_bytes(std::span(ids)));
    put(sizes, std::uint32_t{2});
    put(pointers, at);
    at += 8;
    put(documents, i + 1);
  }
  Bytes head;
  put(head, std::uint64_t{1});
  head.push_back(std::byte{4});  // int32
  put(head, kRecords);
  put(head, kRecords + 1);
  std::ofstream(stem + ".idx", std::ios::binary)
      << std::string_view("MMIDIDX\0\0", 9) << as_text(head) << as_text(sizes) << as_text(pointers)
      << as_text(documents);
  lines.close();
  data.close();
  letters_ = letters(kRecords);
  source().fields = sources::TokenFields{"ids"};
  source().paths = {scratch_.path() + "/lines.jsonl"};
  const auto by_lines = all_splits();
  EXPECT_GT(by_lines.at("valid").size(), 20U);
  source().format = SourceFormat::kMegatron;
  source().fields = {};
  source().paths = {stem + ".bin"};
  EXPECT_EQ(all_splits(), by_lines);
}

RC_GTEST_FIXTURE_PROP(SourceSplitTest, SplitsAreAsLargeAsTheirShares, ()) {
  source().split = {{"a", *rc::gen::inRange<std::uint64_t>(0, 1'000)},
                    {"b", *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000)},
                    {"c", *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000)}};
  std::vector<Letter> all = letters(2'000);
  const auto salt = *rc::gen::arbitrary<std::uint32_t>();
  for (Letter& letter : all) letter.text += fmt::format(" of {}", salt);
  write(std::move(all), 2'000);
  double sum = 0;
  for (const auto& [name, share] : source().split) sum += static_cast<double>(share);
  for (const auto& [name, texts] : all_splits()) {
    const double share = static_cast<double>(source().split[name]) / sum;
    const double expected = 2'000 * share;
    const double deviation = std::sqrt(2'000 * share * (1 - share));
    RC_ASSERT(std::abs(static_cast<double>(texts.size()) - expected) <= 6 * deviation + 1);
  }
}

}  // namespace
}  // namespace batchloom::control
