// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/parquet_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/parquet_file.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using testing::HasSubstr;

const Tokenizer& parquet_bytes() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      make_bytes_tokenizer({.vocab = 32'000, .begin = {}, .end = {}}).value();
  return *tokenizer;
}

Bytes parquet_bytes_of(const std::string& name) {
  return fixture_bytes("../parquet/" + name + ".parquet");
}

ParquetSettings parquet_text(const std::string& field) {
  return {.fields = TextField{field}, .loss_on = LossOn::kAll, .limits = {}};
}

ParquetSettings parquet_tokens(const std::string& ids, const std::string& mask = {}) {
  return {.fields = TokenFields{ids, mask},
          .loss_on = mask.empty() ? LossOn::kAll : LossOn::kMask,
          .limits = {}};
}

const ParquetSettings kParquetAnswers = {
    .fields = AnswerFields{"prompt", "answer"}, .loss_on = LossOn::kAnswer, .limits = {}};

Result<std::unique_ptr<ShardReader>> open_named(Bytes bytes, const ParquetSettings& settings) {
  return open_parquet(read_bytes("a.parquet", std::move(bytes)), settings, parquet_bytes(), {});
}

/// The footer has no checksum.
ReaderFormat parquet_format(const std::string& name, const ParquetSettings& settings) {
  return {.name = name,
          .files = {parquet_bytes_of(name)},
          .empty_files = {parquet_bytes_of("empty")},
          .records = fixture_records("../parquet/" + name),
          .open =
              [=](ShardFiles files) {
                return open_parquet(std::move(files[0]), settings, parquet_bytes(), {});
              },
          .may_change_records = [](std::size_t, std::size_t) { return true; }};
}

INSTANTIATE_TEST_SUITE_P(Parquet, ReaderConformance,
                         testing::Values(parquet_format("text", parquet_text("text")),
                                         parquet_format("nested", parquet_text("meta.source.text")),
                                         parquet_format("answers", kParquetAnswers),
                                         parquet_format("tokens", parquet_tokens("ids", "mask"))),
                         format_name);

std::string refusal_of(Bytes bytes, const ParquetSettings& settings) {
  const auto reader = open_named(std::move(bytes), settings);
  EXPECT_TRUE(reader.is(ErrorKind::kCorruption)) << reader.status().to_string();
  return reader.is_ok() ? std::string() : std::string(reader.status().message());
}

/// Of odd.parquet: the ids of a good record, as text where they are one, or why it is bad.
std::string odd_record(const ParquetSettings& settings, std::uint64_t number) {
  const auto reader = open_named(parquet_bytes_of("odd"), settings);
  if (!reader.is_ok()) return std::string(reader.status().message());
  Record record;
  const auto bad = read_record(**reader, number, record);
  if (!bad.is_ok()) return std::string(bad.status().message());
  if (!bad->has_value()) return {record.ids.begin(), record.ids.end()};
  const std::string& message = (*bad)->message;
  const std::string name = fmt::format("a.parquet: record {} at offset ", number);
  EXPECT_TRUE(message.starts_with(name)) << message;
  return fmt::format("{}: {}", to_string((*bad)->reason),
                     message.substr(message.find(": ", 12) + 2));
}

TEST(ParquetReader, ARecordWithoutATextIsBad) {
  EXPECT_EQ(odd_record(parquet_text("text"), 0), "good");
  EXPECT_EQ(odd_record(parquet_text("text"), 1), "field: field 'text' is null; expected a string");
  EXPECT_EQ(odd_record(parquet_text("text"), 2), "encoding: field 'text': not valid UTF-8");
  EXPECT_EQ(odd_record(parquet_text("text"), 3), "");
  EXPECT_EQ(odd_record(parquet_text("text"), 4), "last");
}

TEST(ParquetReader, AFieldOfAStructThatIsNullIsNull) {
  EXPECT_EQ(odd_record(parquet_text("meta.text"), 0), "in");
  for (const std::uint64_t number : {1U, 2U}) {
    EXPECT_EQ(odd_record(parquet_text("meta.text"), number),
              "field: field 'meta.text' is null; expected a string");
  }
  EXPECT_EQ(odd_record(parquet_text("meta.text"), 4), "out");
}

TEST(ParquetReader, AColumnsWholeNameComesBeforeAFieldOfAStruct) {
  EXPECT_EQ(odd_record(parquet_text("dotted.name"), 1), "name");
  EXPECT_EQ(odd_record(parquet_text("dotted.other"), 4), "struct");
}

TEST(ParquetReader, IdsMustBeThereAndInTheVocabulary) {
  EXPECT_EQ(odd_record(parquet_tokens("ids"), 0), "\1\2");
  EXPECT_EQ(odd_record(parquet_tokens("ids"), 1), "field: field 'ids' is null; expected a list");
  EXPECT_EQ(odd_record(parquet_tokens("ids"), 2),
            "field: field 'ids[1]' is null; expected a number");
  EXPECT_EQ(odd_record(parquet_tokens("ids"), 3),
            "token_id: field 'ids[0]': id 32000 is outside of the vocabulary of 32000 ids");
  EXPECT_EQ(odd_record(parquet_tokens("ids"), 4),
            "token_id: field 'ids[0]': id -1 is outside of the vocabulary of 32000 ids");
  EXPECT_EQ(odd_record(parquet_tokens("fixed"), 4), std::string("\1\0", 2));
}

TEST(ParquetReader, NumbersWithoutASignAreNotNegative) {
  EXPECT_EQ(odd_record(parquet_tokens("large"), 1), "");
  EXPECT_THAT(odd_record(parquet_tokens("large"), 2), HasSubstr("id 9223372036854775808 is"));
  EXPECT_THAT(odd_record(parquet_tokens("large"), 4), HasSubstr("id 4294967296 is"));
  EXPECT_THAT(odd_record(parquet_tokens("unsigned"), 1), HasSubstr("id 2147483648 is"));
  EXPECT_THAT(odd_record(parquet_tokens("unsigned"), 2), HasSubstr("id 4294967295 is"));
}

TEST(ParquetReader, MarksAreZeroOrOneAndAsManyAsIds) {
  const ParquetSettings settings = parquet_tokens("fixed", "mask");
  EXPECT_EQ(odd_record(settings, 0), std::string("\1\0", 2));
  EXPECT_EQ(odd_record(settings, 1), "field: 2 ids in 'fixed' and 1 marks in 'mask'");
  EXPECT_EQ(odd_record(settings, 3), "field: field 'mask[0]' is 2; expected 0 or 1");
  EXPECT_EQ(odd_record(settings, 4), "field: field 'mask[0]' is null; expected a number");
}

TEST(ParquetReader, AMaskThatNobodyAsksForIsNotLookedAt) {
  ParquetSettings settings = parquet_tokens("fixed", "nowhere");
  settings.loss_on = LossOn::kAll;
  EXPECT_EQ(odd_record(settings, 3), std::string("\1\0", 2));
}

TEST(ParquetReader, AColumnThatIsMissingIsAFaultOfTheShard) {
  const std::string why = refusal_of(parquet_bytes_of("answers"), parquet_text("promt"));
  EXPECT_THAT(why, HasSubstr("a.parquet: "));
  EXPECT_THAT(why, HasSubstr("it has no column 'promt'; did you mean 'prompt'? it has prompt, "
                             "answer"));
  for (const char* name :
       {"meta", "meta.text.text", "meta.", ".text", "structs.list.element.text", "structs.text"}) {
    EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_text(name)),
                HasSubstr(fmt::format("column '{}'", name)));
  }
  EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_text("twice")),
              HasSubstr("2 columns are called 'twice'"));
}

TEST(ParquetReader, AColumnOfAnotherTypeIsAFaultOfTheShard) {
  EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_text("number")),
              HasSubstr("column 'number' is INT64; expected a text"));
  EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_text("ids")),
              HasSubstr("column 'ids' is a group of 1 fields (List); expected a text"));
  for (const char* name : {"number", "text", "reals", "days", "lists", "structs", "map", "meta"}) {
    EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_tokens(name)),
                HasSubstr("expected a list of whole numbers"))
        << name;
  }
  EXPECT_THAT(refusal_of(parquet_bytes_of("odd"), parquet_tokens("reals")), HasSubstr("of DOUBLE"));
  EXPECT_THAT(refusal_of(parquet_bytes_of("tokens"), parquet_tokens("mask")),
              HasSubstr("of BOOLEAN; expected a list of whole numbers"));
}

TEST(ParquetReader, WhatIsNoParquetIsNamed) {
  const Bytes whole = parquet_bytes_of("text");
  EXPECT_THAT(refusal_of({}, parquet_text("text")), HasSubstr("a.parquet: offset 0: its footer"));
  EXPECT_THAT(refusal_of(to_bytes(std::string(100, '{')), parquet_text("text")),
              HasSubstr("magic bytes not found"));
  Bytes cut = whole;
  cut.resize(whole.size() - 1);
  EXPECT_THAT(refusal_of(cut, parquet_text("text")), HasSubstr("its footer cannot be read"));
  Bytes headless(whole.begin() + 300, whole.end());
  const auto reader = open_named(headless, parquet_text("text"));
  Record record;
  EXPECT_TRUE(!reader.is_ok() || read_record(**reader, 0, record).is(ErrorKind::kCorruption));
}

TEST(ParquetReader, APageThatDoesNotMatchItsChecksumIsAFaultOfTheShard) {
  Bytes bytes = parquet_bytes_of("text");
  const std::string_view text = as_text(ByteSpan(bytes));
  const std::size_t at = text.find("Stra");
  ASSERT_NE(at, std::string_view::npos);
  bytes[at] = std::byte{'s'};
  const auto reader = open_named(bytes, parquet_text("text")).value();
  Record record;
  for (int i = 0; i < 2; ++i) {
    const auto bad = read_record(*reader, 0, record);
    ASSERT_TRUE(bad.is(ErrorKind::kCorruption));
    EXPECT_THAT(bad.status().message(),
                HasSubstr("a.parquet: offset 4: row group 0: column 'text'"));
    EXPECT_THAT(bad.status().message(), HasSubstr("CRC"));
  }
  EXPECT_FALSE(read_record(*reader, 3, record).value().has_value()) << "another row group is well";
}

TEST(ParquetReader, ARecordThatIsTooLargeIsBadAndItsNeighboursAreNot) {
  ParquetSettings settings = parquet_text("text");
  settings.limits.max_record_bytes = 299;
  const auto reader = open_named(parquet_bytes_of("text"), settings).value();
  Record record;
  const auto bad = read_record(*reader, 4, record);
  ASSERT_TRUE(bad.value().has_value());
  EXPECT_EQ((*bad)->reason, BadRecordReason::kTooLarge);
  EXPECT_THAT((*bad)->message, HasSubstr("300 bytes; max_record_bytes is 299"));
  EXPECT_FALSE(read_record(*reader, 5, record).value().has_value());

  ParquetSettings lists = parquet_tokens("ids", "mask");
  lists.limits.max_record_bytes = 4 * 80 - 1;
  const auto tokens = open_named(parquet_bytes_of("tokens"), lists).value();
  EXPECT_EQ(read_record(*tokens, 5, record).value()->reason, BadRecordReason::kTooLarge);
  EXPECT_FALSE(read_record(*tokens, 4, record).value().has_value());
}

/// Sizes come out of the file.
TEST(ParquetReader, MemoryForPagesIsBounded) {
  const auto open = [&](std::uint64_t max_bytes) {
    return ParquetFile::open(read_bytes("a.parquet", parquet_bytes_of("large")),
                             {{"text", ParquetContent::kText}}, max_bytes, {});
  };
  EXPECT_EQ(open(1 << 20).value()->text(0, 0, {}).value()->size(), 200'000U);
  const auto file = open(50'000).value();
  for (int i = 0; i < 2; ++i) {
    const auto text = file->text(0, 0, {});
    ASSERT_TRUE(text.is(ErrorKind::kCorruption)) << text.status().to_string();
    EXPECT_THAT(text.status().message(),
                HasSubstr("a.parquet: offset 4: row group 0: column 'text' needs more than 50000 "
                          "bytes of memory for pages at once"));
  }
}

}  // namespace
}  // namespace batchloom::sources
