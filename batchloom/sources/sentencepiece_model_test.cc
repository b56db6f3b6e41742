// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;

/// Of tests/fixtures/sentencepiece, which make.sh explains.
std::string spm_file(const std::string& name) {
  const Bytes bytes = fixture_bytes("../sentencepiece/" + name);
  return std::string(as_text(bytes));
}

std::vector<std::string> spm_lines(const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream in(spm_file(name));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::shared_ptr<const SentencePieceModel> spm_model(const std::string& name) {
  return SentencePieceModel::parse(spm_file(name + ".model")).value();
}

std::vector<TokenId> spm_ids(const SentencePieceModel& model, std::string_view text) {
  std::vector<TokenId> ids;
  EXPECT_TRUE(model.encode(text, ids).is_ok());
  return ids;
}

class SentencePieceModels : public ::testing::TestWithParam<std::string> {
 protected:
  const std::shared_ptr<const SentencePieceModel> model_ = spm_model(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, SentencePieceModels, ::testing::Values("unigram", "bpe"));

TEST_P(SentencePieceModels, GiveTheIdsOfTheCommand) {
  const std::vector<std::string> texts = spm_lines("texts.txt");
  const std::vector<std::string> expected = spm_lines(GetParam() + ".ids");
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GT(texts.size(), 10u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string told;
    for (const TokenId id : spm_ids(*model_, texts[i])) {
      told += (told.empty() ? "" : " ") + std::to_string(id);
    }
    EXPECT_EQ(told, expected[i]) << texts[i];
  }
}

TEST_P(SentencePieceModels, IdsAreAddedBehindThoseThatAreThere) {
  EXPECT_EQ(spm_ids(*model_, ""), std::vector<TokenId>());
  std::vector<TokenId> ids = {7, 8};
  ASSERT_TRUE(model_->encode("thread", ids).is_ok());
  const std::vector<TokenId> thread = spm_ids(*model_, "thread");
  ASSERT_FALSE(thread.empty());
  EXPECT_EQ(std::vector<TokenId>(ids.begin(), ids.begin() + 2), (std::vector<TokenId>{7, 8}));
  EXPECT_EQ(std::vector<TokenId>(ids.begin() + 2, ids.end()), thread);
}

TEST_P(SentencePieceModels, ControlSymbolsOfATextAreText) {
  // In both models <s> is 1 and </s> is 2.
  EXPECT_THAT(spm_ids(*model_, "<s>a</s>"), Not(Contains(1u)));
  EXPECT_THAT(spm_ids(*model_, "<s>a</s>"), Not(Contains(2u)));
}

TEST_P(SentencePieceModels, TextsOfManyMebibytesAreEncodedAsAWhole) {
  const std::string line = "The loom weaves many threads into one cloth. ";
  std::string text;
  while (text.size() < (std::size_t{2} << 20)) text += line;
  const std::vector<TokenId> ids = spm_ids(*model_, text);
  EXPECT_THAT(ids, Each(Lt(model_->pieces())));
  const std::size_t of_line = spm_ids(*model_, line + line).size() - spm_ids(*model_, line).size();
  const std::size_t lines = text.size() / line.size();
  EXPECT_NEAR(static_cast<double>(ids.size()), static_cast<double>(of_line * lines), 2);
}

TEST_P(SentencePieceModels, ThreadsShareOne) {
  const std::vector<std::string> texts = spm_lines("train.txt");
  std::vector<std::vector<TokenId>> expected;
  for (const std::string& text : texts) expected.push_back(spm_ids(*model_, text));
  const auto runtime = make_real_runtime();
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 4; ++i) {
    tasks.push_back(runtime->spawn("encoder", [&](const std::stop_token&) {
      for (int round = 0; round < 20; ++round) {
        for (std::size_t t = 0; t < texts.size(); ++t) {
          ASSERT_EQ(spm_ids(*model_, texts[t]), expected[t]);
        }
      }
    }));
  }
  for (const auto& task : tasks) task->join();
}

TEST_P(SentencePieceModels, WhatWasCutOrIsNoneIsRefused) {
  const std::string bytes = spm_file(GetParam() + ".model");
  EXPECT_EQ(SentencePieceModel::parse("").status().message(),
            "no sentencepiece model: it is empty");
  std::vector<std::string> others = {"{\"text\": \"json\"}\n", std::string(64, '\0'),
                                     bytes.substr(1)};
  for (std::size_t size = 1; size < bytes.size(); ++size) others.push_back(bytes.substr(0, size));
  for (const std::string& other : others) {
    const auto parsed = SentencePieceModel::parse(other);
    ASSERT_TRUE(parsed.is(ErrorKind::kInvalid)) << other.size();
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("no sentencepiece model"));
  }
}

/// A damaged model is refused, or is another model.
TEST_P(SentencePieceModels, ADamagedOneIsRefusedOrAnother) {
  const std::string bytes = spm_file(GetParam() + ".model");
  Random random(7);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] ^= static_cast<char>(1U << random.below(8));
    const auto parsed = SentencePieceModel::parse(damaged);
    refused += parsed.is_ok() ? 0 : 1;
    if (!parsed.is_ok()) continue;
    EXPECT_NE((*parsed)->digest(), model_->digest());
  }
  EXPECT_GT(refused, 0);
}

TEST(SentencePieceTokenizer, TheModelIsPartOfTheDigest) {
  const TokenSettings settings{.vocab = 1000, .begin = {1}, .end = {2}};
  const auto unigram = make_sentencepiece_tokenizer(settings, spm_model("unigram")).value();
  const auto bpe = make_sentencepiece_tokenizer(settings, spm_model("bpe")).value();
  EXPECT_EQ(unigram->kind(), "sentencepiece");
  EXPECT_TRUE(unigram->takes_text());
  EXPECT_NE(unigram->digest(), bpe->digest());
  EXPECT_EQ(unigram->digest(),
            make_sentencepiece_tokenizer(settings, spm_model("unigram")).value()->digest());
}

TEST(SentencePieceTokenizer, AVocabularyBelowTheModelsIsRefused) {
  const auto model = spm_model("bpe");
  TokenSettings settings{.vocab = model->pieces(), .begin = {}, .end = {}};
  EXPECT_TRUE(make_sentencepiece_tokenizer(settings, model).is_ok());
  --settings.vocab;
  EXPECT_EQ(make_sentencepiece_tokenizer(settings, model).status().message(),
            "tokens.vocab: " + std::to_string(settings.vocab) + "; the model has " +
                std::to_string(model->pieces()) + " pieces");
  settings = {.vocab = model->pieces(), .begin = {model->pieces()}, .end = {}};
  EXPECT_TRUE(make_sentencepiece_tokenizer(settings, model).is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::sources
