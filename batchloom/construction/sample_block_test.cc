// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/sample_block.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/construction/corpus_testing.h"

namespace batchloom::construction {
namespace {

using store::TokenWidth;
using testing::HasSubstr;

/// A record of 5 tokens with a picture at the third.
class OneRecord {
 public:
  PartContent part(std::uint32_t max_sample_tokens = 8, std::uint32_t number = 0) const {
    return cut_part({max_sample_tokens}, {TokenSpan(tokens), LossMask(learned), pictures},
                    model::PartIndex(number))
        .value();
  }
  static model::SampleMeta meta() {
    model::SampleMeta meta;
    meta.id.source = model::SourceId(2);
    meta.id.index = model::RecordIndex(7);
    meta.tokens = 5;
    meta.valid_labels = 2;
    meta.image_patches = {16};
    return meta;
  }

  std::vector<std::uint32_t> tokens = {10, 11, 12, 13, 14};
  std::vector<LearnedInterval> learned = {{3, 5}};
  Bytes pixels = to_bytes("rgb");
  std::vector<RecordTensor> pictures = {
      {2, {.name = "pixels", .type = store::TensorType::kU8, .shape = {3}}, pixels}};
};

SampleBlockBuilder builder_for(std::uint32_t vocab) {
  return SampleBlockBuilder(
      {.step = model::Step(4), .source = model::SourceId(2), .vocab = vocab, .payload_bytes = 0});
}

std::string refusal(const model::SampleMeta& meta, const PartContent& part,
                    std::uint32_t vocab = 100) {
  SampleBlockBuilder builder = builder_for(vocab);
  const Status added = builder.add(meta, part);
  EXPECT_TRUE(builder.finish()->samples().empty());
  return added.to_string();
}

TEST(SampleBlock, HoldsACopyInTheWidthOfTheVocabulary) {
  for (const std::uint32_t vocab : {15U, 1U << 16, (1U << 16) + 1}) {
    BlockPtr block;
    {
      OneRecord record;
      SampleBlockBuilder builder = builder_for(vocab);
      ASSERT_TRUE(builder.add(OneRecord::meta(), record.part()).is_ok());
      model::SampleMeta second = OneRecord::meta();
      second.id.index = model::RecordIndex(8);
      second.tokens = 4;
      ASSERT_TRUE(builder.add(second, record.part(4)).is_ok());
      block = builder.finish();
    }
    EXPECT_EQ(block->step(), model::Step(4));
    EXPECT_EQ(block->source(), model::SourceId(2));
    EXPECT_EQ(block->token_width(), vocab > (1U << 16) ? TokenWidth::k32 : TokenWidth::k16);
    ASSERT_EQ(block->samples().size(), 2U);
    const auto& [meta, content] = block->samples()[0];
    EXPECT_EQ(meta, OneRecord::meta());
    const TokenSpan tokens(content.tokens, block->token_width());
    ASSERT_EQ(tokens.size(), 5U);
    for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(tokens[i], 10 + i);
    EXPECT_FALSE(content.next_token);
    EXPECT_EQ(content.labels, (std::vector<store::LabelInterval>{{2, 4}}));
    ASSERT_EQ(content.tensors.size(), 1U);
    EXPECT_EQ(content.tensors[0].token, 2U);
    EXPECT_EQ(as_text(content.tensors[0].bytes), "rgb");
    EXPECT_EQ(block->samples()[1].content.next_token, 14U);
    EXPECT_EQ(TokenSpan(block->samples()[1].content.tokens, block->token_width())[3], 13U);
  }
}

TEST(SampleBlock, KnowsTheCrcOfTokensThatWereCopied) {
  const OneRecord record;
  for (const std::uint32_t vocab : {15U, (1U << 16) + 1}) {
    SampleBlockBuilder builder = builder_for(vocab);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(builder.add(OneRecord::meta(), record.part()).is_ok());
    }
    const BlockPtr block = builder.finish();
    for (const BlockSample& sample : block->samples()) {
      EXPECT_EQ(sample.content.tokens_crc, crc32c(sample.content.tokens));
    }
  }
}

/// Whole records of `tokens` tokens each, all of them id 7, but for the one at `place` of the last.
struct WholeRecords {
  std::uint32_t tokens = 1;
  std::uint32_t place = 0;
  std::uint16_t id = 7;
};

/// Whether the last of two is good; the block, if so.
std::pair<bool, BlockPtr> block_of(const WholeRecords& records) {
  SampleBlockBuilder builder = builder_for(100);
  for (std::uint64_t number = 0; number < 2; ++number) {
    model::SampleMeta meta;
    meta.id.source = model::SourceId(2);
    meta.id.index = model::RecordIndex(number);
    meta.tokens = records.tokens;
    meta.valid_labels = records.tokens - 1;
    EXPECT_TRUE(builder.add_whole(meta).is_ok());
  }
  for (const std::size_t sample : {0U, 1U}) {
    const std::span<std::byte> tokens = builder.tokens_of(sample);
    EXPECT_EQ(tokens.size(), 2 * records.tokens);
    for (std::size_t at = 0; at < tokens.size(); at += 2) store_le(std::uint16_t{7}, &tokens[at]);
  }
  store_le(records.id, &builder.tokens_of(1)[2 * records.place]);
  EXPECT_TRUE(builder.check_whole(0));
  const bool good = builder.check_whole(1);
  return {good, builder.finish()};
}

TEST(SampleBlock, LooksAtAllOfAWholeRecord) {
  constexpr std::uint32_t kTokens = 20'001;  // More than are looked at together.
  for (const std::uint32_t place : {0U, 8'191U, 8'192U, 19'000U, kTokens - 1}) {
    EXPECT_FALSE(block_of({.tokens = kTokens, .place = place, .id = 100}).first) << place;
    const auto [good, block] = block_of({.tokens = kTokens, .place = place, .id = 99});
    EXPECT_TRUE(good) << place;
    for (const BlockSample& sample : block->samples()) {
      EXPECT_EQ(sample.content.tokens_crc, crc32c(sample.content.tokens)) << place;
    }
  }
}

TEST(SampleBlock, TensorsOfALaterPartCountFromIt) {
  const OneRecord record;
  model::SampleMeta meta = OneRecord::meta();
  meta.id.part = model::PartIndex(1);
  meta.first_position = 2;
  meta.tokens = 2;
  SampleBlockBuilder builder = builder_for(100);
  ASSERT_EQ(builder.add(meta, record.part(2, 1)).to_string(), "ok");
  EXPECT_EQ(builder.finish()->samples()[0].content.tensors[0].token, 0U);
}

TEST(SampleBlock, CountsWhatItTakes) {
  const OneRecord record;
  SampleBlockBuilder none = builder_for(100);
  SampleBlockBuilder one = builder_for(100);
  ASSERT_TRUE(one.add(OneRecord::meta(), record.part()).is_ok());
  const std::uint64_t payload = 5 * 2 + 3;
  EXPECT_GE(one.finish()->size_bytes(),
            none.finish()->size_bytes() + payload + sizeof(BlockSample));
}

TEST(SampleBlock, RefusesAnIdBeyondTheVocabulary) {
  const OneRecord record;
  EXPECT_THAT(refusal(OneRecord::meta(), record.part(), 13),
              HasSubstr("invalid: sample 2:0:7:0: token 3 of the record is id 13; the vocabulary "
                        "has 13 ids"));
  model::SampleMeta first = OneRecord::meta();
  first.tokens = 4;
  first.valid_labels = 2;
  EXPECT_THAT(refusal(first, record.part(4), 14), HasSubstr("token 4 of the record is id 14"));
  const std::vector<std::uint16_t> narrow = {1, 2, 60'000};
  const PartContent part = cut_part({8}, {TokenSpan(narrow), {}, {}}, model::PartIndex(0)).value();
  model::SampleMeta meta = OneRecord::meta();
  meta.tokens = 3;
  meta.image_patches.clear();
  EXPECT_THAT(refusal(meta, part, 60'000), HasSubstr("token 2 of the record is id 60000"));
}

TEST(SampleBlock, RefusesWhatWasNotPlanned) {
  OneRecord record;
  const auto refused_with = [&](auto change) {
    model::SampleMeta meta = OneRecord::meta();
    change(meta);
    return refusal(meta, record.part());
  };
  EXPECT_THAT(refused_with([](auto& m) { m.id.source = model::SourceId(1); }),
              HasSubstr("sample 1:0:7:0: does not belong into a block of source 2"));
  const std::string changed = "was the file changed after it was indexed?";
  EXPECT_THAT(refused_with([](auto& m) { m.tokens = 6; }), HasSubstr(changed));
  EXPECT_THAT(refused_with([](auto& m) { m.valid_labels = 3; }), HasSubstr(changed));
  EXPECT_THAT(refused_with([](auto& m) { m.first_position = 1; }), HasSubstr(changed));
  EXPECT_THAT(refused_with([](auto& m) { m.image_patches.clear(); }),
              HasSubstr("planned with 0 pictures, and was read with 1 tensors"));
  record.pictures[0].info.shape = {4};
  EXPECT_THAT(refusal(OneRecord::meta(), record.part()),
              HasSubstr("tensor 'pixels' has 3 bytes, its shape makes 4"));
}

}  // namespace
}  // namespace batchloom::construction
