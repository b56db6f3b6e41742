// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/batch_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/jsonl_file.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Bytes of UTF-8, with a mask of answers where records have them, and a memory of its batches.
class BatchesOfBytes : public BatchTokenizer {
 public:
  explicit BatchesOfBytes(TokenSettings settings = {.vocab = 32'000})
      : BatchTokenizer(std::move(settings)) {}

  std::string_view kind() const override { return "batches"; }
  std::string_view name() const override { return "test:bytes"; }
  Status start(std::uint32_t) const override { return Status::ok(); }
  void stop() const override {}

  Result<std::vector<EncodedText>> encode_batch(const TextBatch& batch,
                                                const CallOptions&) const override {
    batches.push_back({batch.entries.front().record, batch.entries.size()});
    if (fails) return Status::unavailable("for now");
    std::vector<EncodedText> all;
    for (const auto& [record, texts] : batch.entries) {
      EncodedText& encoded = all.emplace_back();
      for (const char c : texts.text + texts.answer) {
        encoded.ids.push_back(static_cast<unsigned char>(c));
      }
      if (batch.has_answers) {
        encoded.mask.emplace(texts.text.size(), std::uint8_t{0});
        encoded.mask->resize(encoded.ids.size(), 1);
      }
      if (texts.text == "bad") encoded.fault = {BadRecordReason::kTokenizer, "raises"};
    }
    return all;
  }

  /// First record, and how many.
  mutable std::vector<std::pair<std::uint64_t, std::size_t>> batches = {};
  bool fails = false;
};

Result<std::unique_ptr<ShardReader>> open_batches(std::unique_ptr<ByteReader> file,
                                                  const RecordFields& fields, LossOn loss_on,
                                                  const BatchTokenizer& tokenizer) {
  BL_ASSIGN_OR_RETURN(
      auto texts,
      open_jsonl_file({.bytes = std::move(file), .compression = Compression::kNone},
                      {.fields = fields, .loss_on = LossOn::kAll, .limits = {}}, tokenizer, {}));
  return open_tokenizing(
      std::move(texts),
      {.has_answers = std::holds_alternative<AnswerFields>(fields), .loss_on = loss_on}, tokenizer);
}

std::unique_ptr<ShardReader> texts_of(const std::vector<std::string>& texts,
                                      const BatchTokenizer& tokenizer,
                                      LossOn loss_on = LossOn::kAll) {
  std::string lines;
  for (const std::string& text : texts) lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
  return open_batches(read_bytes("a.jsonl", to_bytes(lines)), TextField{"text"}, loss_on, tokenizer)
      .value();
}

ReaderFormat batches_format(const std::string& name, const RecordFields& fields, LossOn loss_on) {
  static const BatchesOfBytes kTokenizer;
  return {.name = "batches_" + name,
          .files = {fixture_bytes(name + ".jsonl")},
          .empty_files = {fixture_bytes("empty.jsonl")},
          .records = fixture_records(name),
          .open =
              [=](ShardFiles files) {
                return open_batches(std::move(files[0]), fields, loss_on, kTokenizer);
              },
          .may_change_records = [](std::size_t, std::size_t) { return true; }};
}

// The records of readers that encode each text by itself.
INSTANTIATE_TEST_SUITE_P(Batches, ReaderConformance,
                         testing::Values(batches_format("text", TextField{"text"}, LossOn::kAll),
                                         batches_format("answers", AnswerFields{"prompt", "answer"},
                                                        LossOn::kAnswer)),
                         format_name);

TEST(BatchTokenizer, BatchesAreCutByTheShardsOrder) {
  const BatchesOfBytes tokenizer;
  const auto reader = texts_of(std::vector<std::string>(600, "x"), tokenizer);
  Record record;
  for (std::uint64_t i = 0; i < 600; ++i) ASSERT_TRUE(reader->read(i, {}, record).is_ok());
  EXPECT_THAT(tokenizer.batches,
              ElementsAre(std::pair(0U, 256U), std::pair(256U, 256U), std::pair(512U, 88U)));
  ASSERT_TRUE(reader->read(7, {}, record).is_ok());
  EXPECT_EQ(tokenizer.batches.back(), (std::pair<std::uint64_t, std::size_t>(7, 256)));
}

TEST(BatchTokenizer, TheTextThatMakesABatchLargeEndsIt) {
  const BatchesOfBytes tokenizer;
  const std::string half(kBatchBytes / 2, 'x');
  const auto reader = texts_of({half, half, "a", half + half + half, "b"}, tokenizer);
  Record record;
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(reader->read(i, {}, record).is_ok());
  EXPECT_THAT(tokenizer.batches,
              ElementsAre(std::pair(0U, 2U), std::pair(2U, 2U), std::pair(4U, 1U)));
}

TEST(BatchTokenizer, BadRecordsAreNamedWhereverTheyWereFound) {
  const BatchesOfBytes tokenizer;
  const auto reader = texts_of({"a", "bad", "\\ud800", "b"}, tokenizer);
  Record record;
  for (const std::uint64_t number : {1U, 2U}) {
    const auto bad = reader->read(number, {}, record).value();
    ASSERT_TRUE(bad.has_value());
    EXPECT_EQ(bad->reason, number == 1 ? BadRecordReason::kTokenizer : BadRecordReason::kEncoding);
    EXPECT_THAT(bad->message, HasSubstr(fmt::format("a.jsonl: record {} at offset ", number)));
    EXPECT_TRUE(record.ids.empty());
  }
  EXPECT_FALSE(reader->read(3, {}, record).value().has_value());
  EXPECT_THAT(record.ids, ElementsAre('b'));
}

/// Three texts, and what reading the last one comes to.
class LastFails final : public ShardReader {
 public:
  explicit LastFails(Status last) : last_(std::move(last)) {}

  std::string_view name() const override { return "a.jsonl"; }
  std::uint64_t records() const override { return 3; }
  Result<std::optional<BadRecord>> read(std::uint64_t record, const CallOptions&,
                                        Record& out) override {
    if (record == 2 && !last_.is_ok()) return last_;
    out.texts.text = "x";
    return std::optional<BadRecord>();
  }

 private:
  const Status last_;
};

TEST(BatchTokenizer, AFaultOfTheShardComesWithItsRecordAndStorageMakesNoSmallerBatch) {
  const BatchesOfBytes tokenizer;
  Record record;
  const auto faulty =
      open_tokenizing(std::make_unique<LastFails>(Status::corruption("cut")), {}, tokenizer);
  EXPECT_TRUE(faulty->read(0, {}, record).is_ok());
  EXPECT_TRUE(faulty->read(2, {}, record).is(ErrorKind::kCorruption));
  EXPECT_THAT(tokenizer.batches, ElementsAre(std::pair(0U, 2U)));
  const auto slow =
      open_tokenizing(std::make_unique<LastFails>(Status::unavailable("slow")), {}, tokenizer);
  EXPECT_TRUE(slow->read(0, {}, record).is(ErrorKind::kUnavailable));
  EXPECT_EQ(tokenizer.batches.size(), 1U);
}

TEST(BatchTokenizer, WhatFailedCanBeAskedForAgain) {
  BatchesOfBytes tokenizer;
  const auto reader = texts_of({"a", "b"}, tokenizer);
  Record record;
  tokenizer.fails = true;
  EXPECT_TRUE(reader->read(1, {}, record).is(ErrorKind::kUnavailable));
  tokenizer.fails = false;
  EXPECT_TRUE(reader->read(1, {}, record).is_ok());
  EXPECT_THAT(record.ids, ElementsAre('b'));
}

TEST(BatchTokenizer, IdsAroundRecordsCountAsTheMaskOfTheLastDoes) {
  const BatchesOfBytes tokenizer({.vocab = 300, .begin = {290}, .end = {298, 299}});
  const auto read = [&](const std::string& answer) {
    const auto lines = fmt::format("{{\"p\": \"q\", \"a\": \"{}\"}}\n", answer);
    const auto reader = open_batches(read_bytes("a.jsonl", to_bytes(lines)), AnswerFields{"p", "a"},
                                     LossOn::kAnswer, tokenizer)
                            .value();
    Record record;
    EXPECT_TRUE(reader->read(0, {}, record).is_ok());
    return record;
  };
  EXPECT_THAT(read("z").ids, ElementsAre(290, 'q', 'z', 298, 299));
  EXPECT_THAT(read("z").loss_mask, ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(read("").loss_mask, ElementsAre(0, 0, 0, 0)) << "the mask's last, and not the field";
}

TEST(BatchTokenizer, AMaskIsThereWhereTheLossNeedsOneAndNowhereElse) {
  const BatchesOfBytes tokenizer;
  Record record;
  EXPECT_EQ(texts_of({"a"}, tokenizer, LossOn::kMask)->read(0, {}, record).status().to_string(),
            "invalid: tokenizer test:bytes: a.jsonl: record 0: it gives ids without a mask, and "
            "loss_on is \"mask\": only a mask tells which of them that is; return (ids, mask), or "
            "say loss_on = \"all\"");
  const auto pairs = open_batches(read_bytes("a.jsonl", to_bytes("{\"p\": \"q\", \"a\": \"z\"}\n")),
                                  AnswerFields{"p", "a"}, LossOn::kAll, tokenizer)
                         .value();
  EXPECT_EQ(pairs->read(0, {}, record).status().to_string(),
            "invalid: tokenizer test:bytes: a.jsonl: record 0: it gives a mask, and loss_on is "
            "\"all\": say loss_on = \"mask\", or return ids alone");
}

}  // namespace
}  // namespace batchloom::sources
