// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/jsonl_parser.h"
#include "batchloom/sources/jsonl_scan.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using std::string_literals::operator""s;

constexpr std::uint64_t kOffsetsBytes = 1 << 20;

std::unique_ptr<Tokenizer> bytes_with(std::vector<TokenId> begin, std::vector<TokenId> end) {
  return make_bytes_tokenizer({.vocab = 32'000, .begin = std::move(begin), .end = std::move(end)})
      .value();
}

const Tokenizer& plain_bytes() {
  static const std::unique_ptr<Tokenizer> tokenizer = bytes_with({}, {});
  return *tokenizer;
}

JsonlSettings text_in(const std::string& field) {
  return {.fields = TextField{field}, .loss_on = LossOn::kAll, .limits = {}};
}

const JsonlSettings kAnswerSettings = {
    .fields = AnswerFields{"prompt", "answer"}, .loss_on = LossOn::kAnswer, .limits = {}};
const JsonlSettings kTokenSettings = {
    .fields = TokenFields{"ids", "mask"}, .loss_on = LossOn::kMask, .limits = {}};

Result<std::unique_ptr<ShardReader>> open_scanned(std::unique_ptr<ByteReader> file,
                                                  const JsonlSettings& settings,
                                                  const Tokenizer& tokenizer = plain_bytes()) {
  BL_ASSIGN_OR_RETURN(auto offsets, scan_jsonl_offsets(*stream_of(*file), kOffsetsBytes, {}));
  return open_jsonl(std::move(file), std::move(offsets), settings, tokenizer);
}

ReaderFormat jsonl_format(const std::string& name, const JsonlSettings& settings) {
  return {.name = name,
          .files = {fixture_bytes(name + ".jsonl")},
          .empty_files = {fixture_bytes("empty.jsonl")},
          .records = fixture_records(name),
          .open = [=](ShardFiles files) { return open_scanned(std::move(files[0]), settings); },
          .may_change_records = [](std::size_t, std::size_t) { return true; }};
}

/// With the offsets of the file as it was, as a sidecar index keeps them.
ReaderFormat indexed_format(const std::string& name, const JsonlSettings& settings) {
  ReaderFormat format = jsonl_format(name, settings);
  const auto file = read_bytes("", format.files[0]);
  const auto offsets = scan_jsonl_offsets(*stream_of(*file), kOffsetsBytes, {}).value();
  format.open = [=](ShardFiles files) -> Result<std::unique_ptr<ShardReader>> {
    if (files[0]->size_bytes() == 0) return open_scanned(std::move(files[0]), settings);
    return open_jsonl(std::move(files[0]), offsets, settings, plain_bytes());
  };
  format.name = "indexed_" + name;
  return format;
}

INSTANTIATE_TEST_SUITE_P(Jsonl, ReaderConformance,
                         testing::Values(jsonl_format("text", text_in("text")),
                                         jsonl_format("crlf", text_in("text")),
                                         jsonl_format("answers", kAnswerSettings),
                                         jsonl_format("tokens", kTokenSettings),
                                         indexed_format("crlf", text_in("text")),
                                         indexed_format("tokens", kTokenSettings)),
                         format_name);

/// The only record of a file with one line.
Record read_line(const std::string& line, const JsonlSettings& settings,
                 const Tokenizer& tokenizer = plain_bytes()) {
  const auto reader = open_scanned(read_bytes("a.jsonl", to_bytes(line)), settings, tokenizer);
  Record record;
  const auto bad = read_record(**reader, 0, record);
  EXPECT_FALSE(bad.value().has_value()) << bad.value()->message << "\n" << line;
  return record;
}

std::string text_of(const Record& record) {
  return {record.ids.begin(), record.ids.end()};
}

void expect_bad_line(const std::string& line, const JsonlSettings& settings, BadRecordReason reason,
                     const std::string& why) {
  // Its neighbours must stay good.
  const auto file = [&] { return read_bytes("a.jsonl", to_bytes("{}\n" + line + "\n{}")); };
  const auto reader = open_scanned(file(), settings).value();
  Record record;
  const auto bad = read_record(*reader, 1, record);
  ASSERT_TRUE(bad.is_ok()) << bad.status().to_string();
  ASSERT_TRUE(bad->has_value()) << line << " should be: " << why;
  EXPECT_EQ((*bad)->message, "a.jsonl: record 1 at offset 3: " + why) << line;
  EXPECT_EQ((*bad)->reason, reason) << line;
  EXPECT_TRUE(record.ids.empty() && record.loss_mask.empty());
  EXPECT_EQ(record.place, (RecordPlace{3, line.size()}));
}

TEST(JsonlReader, TextIsTakenAsJsonMeansIt) {
  const JsonlSettings settings = text_in("t");
  EXPECT_EQ(text_of(read_line(R"({"t":"a\u00e9\ud83d\ude00\u0000z"})", settings)),
            "a\u00e9\U0001f600\0z"s);
  EXPECT_EQ(text_of(read_line(R"({"\u0074":"escaped name"})", settings)), "escaped name");
  EXPECT_EQ(text_of(read_line(R"({"t":"", "u":"t"})", settings)), "");
  EXPECT_EQ(text_of(read_line(R"( {"u":{"t":"no"},"v":[{"t":1}] , "t" : "yes" } )", settings)),
            "yes");
  EXPECT_EQ(text_of(read_line("\xef\xbb\xbf\xef\xbb\xbf{\"t\":\"two marks\"}", settings)),
            "two marks");
  EXPECT_EQ(text_of(read_line(R"({"a":1,"a":2,"t":"others may be there twice"})", settings)),
            "others may be there twice");
}

TEST(JsonlReader, IdsAreSetAroundRecords) {
  const auto tokenizer = bytes_with({256}, {257, 258});
  using Ids = std::vector<TokenId>;
  using Mask = std::vector<std::uint8_t>;
  const auto read = [&](const std::string& line, const JsonlSettings& settings) {
    return read_line(line, settings, *tokenizer);
  };
  Record record = read(R"({"t":"A"})", text_in("t"));
  EXPECT_EQ(record.ids, (Ids{256, 65, 257, 258}));
  EXPECT_EQ(record.loss_mask, Mask{}) << "all count";
  EXPECT_EQ(size_of(record).valid_labels, 3U);
  record = read(R"({"t":""})", text_in("t"));
  EXPECT_EQ(record.ids, (Ids{256, 257, 258}));

  record = read(R"({"answer":"B","prompt":"AA"})", kAnswerSettings);
  EXPECT_EQ(record.ids, (Ids{256, 65, 65, 66, 257, 258}));
  EXPECT_EQ(record.loss_mask, (Mask{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(size_of(record).valid_labels, 3U);
  EXPECT_EQ(read(R"({"answer":"","prompt":"A"})", kAnswerSettings).loss_mask, (Mask{0, 0, 1, 1}))
      << "what follows an answer counts as it would";
  JsonlSettings all = kAnswerSettings;
  all.loss_on = LossOn::kAll;
  EXPECT_EQ(read(R"({"answer":"B","prompt":"AA"})", all).loss_mask, Mask{});

  record = read(R"({"ids":[7,31999],"mask":[1,0]})", kTokenSettings);
  EXPECT_EQ(record.ids, (Ids{256, 7, 31'999, 257, 258}));
  EXPECT_EQ(record.loss_mask, (Mask{0, 1, 0, 0, 0}));
  EXPECT_EQ(read(R"({"mask":[false,true],"ids":[7,8]})", kTokenSettings).loss_mask,
            (Mask{0, 0, 1, 1, 1}));
  EXPECT_EQ(read(R"({"mask":[],"ids":[]})", kTokenSettings).loss_mask, (Mask{0, 0, 0}));
  JsonlSettings ids = kTokenSettings;
  ids.loss_on = LossOn::kAll;
  EXPECT_EQ(read(R"({"ids":[7]})", ids).loss_mask, Mask{}) << "the mask is not looked at";
}

TEST(JsonlReader, WhatIsNoJsonIsABadRecord) {
  using enum BadRecordReason;
  struct Case {
    std::string line;
    BadRecordReason reason;
    std::string why;
  };
  const std::string atom = "no JSON: The JSON element does not have the requested type.";
  const std::string shape =
      "no JSON: The JSON document has an improper structure: missing or superfluous commas, "
      "braces, missing keys, etc.";
  const std::string number = "no JSON: Problem while parsing a number";
  const std::string cut = "no JSON: JSON document ended early in the middle of an object or array.";
  const Case cases[] = {
      {"17", kSyntax, "a number; expected an object"},
      {R"(["t"])", kSyntax, "a list; expected an object"},
      {"null", kSyntax, "null; expected an object"},
      {"hello", kSyntax, shape},
      {R"({"t":"a"}})", kSyntax, "something follows the object"},
      {R"({"t":"a"}{"t":"b"})", kSyntax, "something follows the object"},
      {R"({"t":"a"} 1 })", kSyntax, "something follows the object"},
      {R"({"t":"a")", kSyntax, cut},
      {R"({"t":"a)", kSyntax, "a string has no end"},
      {R"({"t":"a",})", kSyntax, shape},
      {R"({"t":"a" "u":1})", kSyntax, shape},
      {R"({"t":})", kSyntax, shape},
      {R"({"u":tru,"t":"a"})", kSyntax, atom},
      {R"({"u":nul,"t":"a"})", kSyntax, atom},
      {R"({"u":NaN,"t":"a"})", kSyntax, shape},
      {R"({"u":[1,],"t":"a"})", kSyntax, shape},
      {R"({"u":[1 2],"t":"a"})", kSyntax, shape},
      {R"({"u":{"v":01},"t":"a"})", kSyntax, number},
      {R"({"u":1.,"t":"a"})", kSyntax, number},
      {R"({"u":-,"t":"a"})", kSyntax, number},
      {R"({"u":1e,"t":"a"})", kSyntax, number},
      {R"({"u":1x,"t":"a"})", kSyntax, number},
      {"{\"t\":\"a\0b\"}"s, kSyntax, "a string has a control character in it"},
      {"{\"t\":\"a\tb\"}", kSyntax, "a string has a control character in it"},
      {"\0\0\0"s, kSyntax, shape},
      {"{\"t\":\"\xff\"}", kEncoding, "not valid UTF-8"},
      {"{\"u\":\"\xc3\",\"t\":\"a\"}", kEncoding, "not valid UTF-8"},
      {R"({"t":"\ud800"})", kEncoding, "a string has an escape that is no character"},
      {R"({"u":"\q","t":"a"})", kEncoding, "a string has an escape that is no character"},
      {R"({"\u12":1,"t":"a"})", kEncoding, "a string has an escape that is no character"},
  };
  for (const Case& bad : cases) expect_bad_line(bad.line, text_in("t"), bad.reason, bad.why);
  EXPECT_EQ(text_of(read_line(R"({"n":[-0.5e-7,123456789012345678901234567890,1E400],"t":"a"})",
                              text_in("t"))),
            "a")
      << "numbers of any size are JSON";
}

TEST(JsonlReader, AFieldThatIsNotAsNamedIsABadRecord) {
  using enum BadRecordReason;
  const std::pair<std::string, std::string> texts[] = {
      {R"({})", "field 't' is missing"},
      {R"({"T":"a"})", "field 't' is missing"},
      {R"({"t":null})", "field 't' is null; expected a string"},
      {R"({"t":17})", "field 't' is a number; expected a string"},
      {R"({"t":true})", "field 't' is true or false; expected a string"},
      {R"({"t":["a"]})", "field 't' is a list; expected a string"},
      {R"({"t":{"t":"a"}})", "field 't' is an object; expected a string"},
      {R"({"t":"a","t":"a"})", "field 't' is there twice"},
  };
  for (const auto& [line, why] : texts) expect_bad_line(line, text_in("t"), kField, why);
  expect_bad_line(R"({"prompt":"a"})", kAnswerSettings, kField, "field 'answer' is missing");
  expect_bad_line(R"({"prompt":1,"answer":"a"})", kAnswerSettings, kField,
                  "field 'prompt' is a number; expected a string");
  expect_bad_line("{}", text_in("caf\u00e9"), kField, "field 'caf\\xc3\\xa9' is missing");

  const std::pair<std::string, std::string> tokens[] = {
      {R"({"ids":[1]})", "field 'mask' is missing"},
      {R"({"ids":"1","mask":[1]})", "field 'ids' is a string; expected a list"},
      {R"({"ids":[1],"mask":1})", "field 'mask' is a number; expected a list"},
      {R"({"ids":[1,"2"],"mask":[1]})", "field 'ids[1]' is a string; expected a number"},
      {R"({"ids":[1.5],"mask":[1]})", "field 'ids[0]' is 1.5; expected a whole number"},
      {R"({"ids":[1e3],"mask":[1]})", "field 'ids[0]' is 1e3; expected a whole number"},
      {R"({"ids":[1],"mask":[2]})", "field 'mask[0]' is 2; expected 0 or 1"},
      {R"({"ids":[1],"mask":[ 2 ]})", "field 'mask[0]' is 2; expected 0 or 1"},
      {R"({"ids":[1],"mask":[-1]})", "field 'mask[0]' is -1; expected 0 or 1"},
      {R"({"ids":[1],"mask":[1.0]})", "field 'mask[0]' is 1.0; expected 0 or 1"},
      {R"({"ids":[1],"mask":[null]})", "field 'mask[0]' is null; expected 0 or 1"},
      {R"({"ids":[1,2],"mask":[1]})", "2 ids in 'ids' and 1 marks in 'mask'"},
      {R"({"ids":[],"mask":[1]})", "0 ids in 'ids' and 1 marks in 'mask'"},
  };
  for (const auto& [line, why] : tokens) expect_bad_line(line, kTokenSettings, kField, why);
}

TEST(JsonlReader, AnIdOutsideOfTheVocabularyIsABadRecord) {
  for (const std::string id : {"32000", "-1", "-0", "4294967296", "99999999999999999999999"}) {
    expect_bad_line(
        fmt::format(R"({{"ids":[1,{}],"mask":[1,1]}})", id), kTokenSettings,
        BadRecordReason::kTokenId,
        fmt::format("field 'ids[1]': id {} is outside of the vocabulary of 32000 ids", id));
  }
  expect_bad_line(R"({"ids":[007],"mask":[1]})", kTokenSettings, BadRecordReason::kSyntax,
                  "no JSON: Problem while parsing a number");
}

TEST(JsonlReader, NestingIsBounded) {
  const auto nested = [](int depth) {
    return R"({"u":)" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + R"(,"t":"a"})";
  };
  EXPECT_EQ(text_of(read_line(nested(JsonlParser::kMaxDepth), text_in("t"))), "a");
  expect_bad_line(nested(JsonlParser::kMaxDepth + 1), text_in("t"), BadRecordReason::kSyntax,
                  "nested deeper than 1000 levels");
  expect_bad_line(nested(2'000'000), text_in("t"), BadRecordReason::kSyntax,
                  "nested deeper than 1000 levels");
}

TEST(JsonlReader, ALargeRecordIsABadOne) {
  JsonlSettings settings = text_in("t");
  settings.limits.max_record_bytes = 9;
  EXPECT_EQ(text_of(read_line(R"({"t":"a"})", settings)), "a");
  expect_bad_line(R"({"t":"ab"})", settings, BadRecordReason::kTooLarge,
                  "10 bytes; max_record_bytes is 9");
  settings.limits.max_record_bytes = 0;
  EXPECT_TRUE(open_scanned(read_bytes("a", {}), settings).is(ErrorKind::kInvalid));
}

/// Offsets that somebody gives.
class GivenOffsets final : public RecordOffsets {
 public:
  explicit GivenOffsets(RecordPlace place) : place_(place) {}
  std::uint64_t count() const override { return 1; }
  RecordPlace place(std::uint64_t) const override { return place_; }

 private:
  RecordPlace place_;
};

TEST(JsonlReader, OffsetsOfAnotherFileAreAFaultOfTheShard) {
  const std::string text = "{\"t\":\"a\"}\n{\"u\":{\"t\":\"b\"}}\r\n";
  const auto read_at = [&](const RecordPlace& place) {
    Record record;
    const auto reader =
        open_jsonl(read_bytes("a.jsonl", to_bytes(text)), std::make_shared<GivenOffsets>(place),
                   text_in("t"), plain_bytes())
            .value();
    return read_record(*reader, 0, record);
  };
  EXPECT_FALSE(read_at({0, 9}).value().has_value());
  const RecordPlace wrong[] = {
      {15, 9},                 // An object in another one.
      {0, 8},                  // Not to the line's end.
      {1, 8},                  // Not from its beginning.
      {0, text.size()},        // Two lines.
      {text.size(), 1},        // Beyond the end.
      {text.size() + 1, 0},    //
      {~std::uint64_t{0}, 9},  //
      {9, ~std::uint64_t{0}},  //
  };
  for (const RecordPlace& place : wrong) {
    const auto bad = read_at(place);
    ASSERT_TRUE(bad.is(ErrorKind::kCorruption)) << place.offset_bytes;
    EXPECT_TRUE(bad.status().message().ends_with("index it again")) << bad.status().message();
  }
}

TEST(JsonlReader, FieldsLossAndTokenizerGoTogether) {
  const auto ids = make_ids_tokenizer({.vocab = 8, .begin = {}, .end = {}}).value();
  const auto status_of = [&](const JsonlSettings& settings, const Tokenizer& tokenizer) {
    return open_scanned(read_bytes("a.jsonl", {}), settings, tokenizer).status();
  };
  EXPECT_EQ(status_of(text_in("t"), *ids).message(),
            "fields: the tokenizer ids takes no text; name a field of ids as tokens");
  EXPECT_TRUE(status_of(kTokenSettings, *ids).is_ok());
  EXPECT_TRUE(status_of(kTokenSettings, plain_bytes()).is_ok());
  EXPECT_EQ(status_of(text_in(""), plain_bytes()).message(), "fields.text: no field is named");
  JsonlSettings settings = text_in("t");
  settings.loss_on = LossOn::kAnswer;
  EXPECT_EQ(status_of(settings, plain_bytes()).message(),
            "loss_on: \"answer\" needs the fields prompt and answer");
  settings.loss_on = LossOn::kMask;
  EXPECT_EQ(status_of(settings, plain_bytes()).message(),
            "loss_on: \"mask\" needs the fields tokens and loss_mask");
  settings.fields = TokenFields{"ids"};
  EXPECT_TRUE(status_of(settings, plain_bytes()).is(ErrorKind::kInvalid));
  settings = kAnswerSettings;
  settings.fields = AnswerFields{"x", "x"};
  EXPECT_EQ(status_of(settings, plain_bytes()).message(),
            "fields: prompt and answer are both 'x'; name two fields");
}

TEST(JsonlReader, NoLabelBelongsToTheFirstId) {
  EXPECT_EQ(size_of(read_line(R"({"ids":[7,8,9],"mask":[1,0,1]})", kTokenSettings)).valid_labels,
            1U);
  EXPECT_EQ(size_of(read_line(R"({"ids":[7],"mask":[1]})", kTokenSettings)).valid_labels, 0U);
  EXPECT_EQ(size_of(read_line(R"({"t":"abc"})", text_in("t"))).valid_labels, 2U);
  EXPECT_EQ(size_of(read_line(R"({"t":""})", text_in("t"))).valid_labels, 0U);
}

/// Some memory is kept from record to record; what it held before does not show.
RC_GTEST_PROP(JsonlReader, EachLineIsReadAsIfItWereAlone, ()) {
  const auto lines = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
      rc::gen::oneOf(rc::gen::just(R"({"t":"good"})"s), rc::gen::just(R"({"t":"\u00e9\n"})"s),
                     rc::gen::map(rc::gen::string<std::string>(), [](std::string text) {
                       std::erase(text, '\n');
                       return "{" + text;  // Never blank, and of no other encoding.
                     }))));
  std::string whole;
  for (const std::string& line : lines) whole += "{}\n" + line + "\n";
  const auto reader = open_scanned(read_bytes("a.jsonl", to_bytes(whole)), text_in("t")).value();
  RC_ASSERT(reader->records() == 2 * lines.size());
  Record record;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto bad = read_record(*reader, 2 * i + 1, record);
    Record alone;
    const auto single =
        open_scanned(read_bytes("b.jsonl", to_bytes("{}\n" + lines[i])), text_in("t"));
    const auto bad_alone = read_record(**single, 1, alone);
    RC_ASSERT(bad.value().has_value() == bad_alone.value().has_value());
    RC_ASSERT(record.ids == alone.ids);
  }
}

/// Also the one test that goes through a real file.
TEST(JsonlReader, ALineOf100MebibytesIsReadUnlessItIsNotAllowed) {
  constexpr std::size_t kLineBytes = std::size_t{100} << 20;
  const std::string path = testing::TempDir() + "/jsonl_reader_long.jsonl";
  {
    std::ofstream file(path, std::ios::binary);
    const std::string piece(1 << 20, 'x');
    file << "{\"t\":\"first\"}\n{\"t\":\"";
    for (int i = 0; i < 100; ++i) file << piece;
    file << "\"}\n{\"t\":\"last\"}\n";
  }
  JsonlSettings settings = text_in("t");
  const auto open_again = [&] { return open_scanned(open_file(path).value(), settings).value(); };
  Record record;
  settings.limits.max_record_bytes = kLineBytes;
  const auto strict = open_again();
  ASSERT_EQ(strict->records(), 3U);
  EXPECT_EQ(read_record(*strict, 1, record).value()->reason, BadRecordReason::kTooLarge);
  ASSERT_FALSE(read_record(*strict, 2, record).value().has_value());
  EXPECT_EQ(text_of(record), "last");
  settings.limits = {};
  const auto patient = open_again();
  ASSERT_FALSE(read_record(*patient, 1, record).value().has_value());
  EXPECT_EQ(record.ids.size(), kLineBytes);
  ASSERT_FALSE(read_record(*patient, 0, record).value().has_value());
  EXPECT_EQ(text_of(record), "first");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace batchloom::sources
