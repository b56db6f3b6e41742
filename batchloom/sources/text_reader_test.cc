// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/text_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

const Tokenizer& text_ids() {
  static const auto tokenizer =
      make_bytes_tokenizer({.vocab = 300, .begin = {256}, .end = {257}}).value();
  return *tokenizer;
}

Result<std::unique_ptr<ShardReader>> open_as_text(std::unique_ptr<ByteReader> bytes,
                                                  Compression compression = Compression::kNone) {
  return open_text({.bytes = std::move(bytes), .compression = compression}, {}, text_ids(), {});
}

/// A file of JSON Lines is a text, too.
ReaderFormat text_format(const std::string& name, const std::string& file, const std::string& plain,
                         Compression compression) {
  const Bytes content = fixture_bytes(plain);
  Record whole{.place = {0, content.size()}, .ids = {256}, .loss_mask = {}};
  const std::string_view text = as_text(content);
  const std::size_t mark = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  for (const char c : text.substr(mark)) whole.ids.push_back(static_cast<unsigned char>(c));
  whole.ids.push_back(257);
  return {.name = name,
          .files = {fixture_bytes(file)},
          .empty_files = {},
          .records = {whole},
          .open = [=](ShardFiles files) { return open_as_text(std::move(files[0]), compression); },
          .may_change_records = [=](std::size_t,
                                    std::size_t) { return compression == Compression::kNone; },
          .is_one_record = true};
}

INSTANTIATE_TEST_SUITE_P(Text, ReaderConformance,
                         testing::Values(text_format("text_file", "crlf.jsonl", "crlf.jsonl",
                                                     Compression::kNone),
                                         text_format("text_gzip", "../compressed/members.jsonl.gz",
                                                     "text.jsonl", Compression::kGzip),
                                         text_format("text_zstd", "../compressed/frames.jsonl.zst",
                                                     "text.jsonl", Compression::kZstd)),
                         format_name);

/// What the file is as a record, or why it is a bad one.
std::string record_in(const std::string& content, const ReadLimits& limits = {}) {
  const auto reader =
      open_text({.bytes = read_bytes("a.txt", to_bytes(content))}, limits, text_ids(), {}).value();
  EXPECT_EQ(reader->records(), 1U);
  Record record;
  const auto bad = read_record(*reader, 0, record).value();
  if (bad) return std::string(to_string(bad->reason)) + ": " + bad->message;
  EXPECT_EQ(record.ids.front(), 256U);
  EXPECT_EQ(record.ids.back(), 257U);
  std::string text;
  for (std::size_t i = 1; i + 1 < record.ids.size(); ++i) text += static_cast<char>(record.ids[i]);
  return text;
}

TEST(TextReader, AFileIsARecordWithAllItsBytes) {
  for (const std::string text : {"", "\n", " a\r\n\n", "S\xc3\xbc\xe2\x82\xac", "a\0b"}) {
    EXPECT_EQ(record_in(text), text);
  }
  EXPECT_EQ(record_in("a\0b"s), "a\0b"s);
  EXPECT_EQ(record_in("\xef\xbb\xbfx"), "x") << "a mark belongs to no record";
  EXPECT_EQ(record_in("\xef\xbb\xbf"), "");
}

TEST(TextReader, WhatIsNotUtf8IsABadRecord) {
  EXPECT_EQ(record_in("caf\xe9"), "encoding: a.txt: record 0 at offset 0: not valid UTF-8");
  EXPECT_THAT(record_in("\xff\xfe"
                        "a\0"s),
              HasSubstr("in UTF-16; convert it to UTF-8"));
  EXPECT_THAT(record_in("a\0b\0"s), HasSubstr("in UTF-16; convert it to UTF-8"));
  EXPECT_THAT(record_in("\x1f\x8b\x08"), HasSubstr("compressed by gzip, and no text"));
}

TEST(TextReader, ALargeFileIsABadRecord) {
  EXPECT_EQ(record_in("abc", {.max_record_bytes = 3}), "abc");
  EXPECT_EQ(record_in("abcd", {.max_record_bytes = 3}),
            "too_large: a.txt: record 0 at offset 0: 4 bytes; max_record_bytes is 3");
}

TEST(TextReader, ATextNeedsATokenizerThatTakesIt) {
  const auto ids = make_ids_tokenizer({.vocab = 8}).value();
  const auto opened = open_text({.bytes = read_bytes("a.txt", {})}, {}, *ids, {});
  EXPECT_EQ(opened.status().message(), "a.txt: the tokenizer ids takes no text");
  EXPECT_TRUE(open_text({.bytes = read_bytes("a.txt", {})}, {.max_record_bytes = 0}, text_ids(), {})
                  .is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::sources
