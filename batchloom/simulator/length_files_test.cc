// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/length_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace batchloom::simulator {
namespace {

using Lengths = std::vector<std::uint32_t>;

std::string path_of(const std::string& name) {
  return testing::TempDir() + "/length_files_" + name;
}

/// Writes the file and reads its lengths.
Result<Lengths> lengths_in(const std::string& name, const std::string& content,
                           const std::string& column = {}) {
  std::ofstream(path_of(name), std::ios::binary) << content;
  return read_lengths({.path = path_of(name), .column = column});
}

void expect_refused(const std::string& name, const std::string& content, const std::string& column,
                    const std::string& why, ErrorKind kind = ErrorKind::kInvalid) {
  const Result<Lengths> lengths = lengths_in(name, content, column);
  ASSERT_TRUE(lengths.is(kind)) << why;
  EXPECT_TRUE(lengths.status().message().find(path_of(name)) != std::string::npos);
  EXPECT_TRUE(lengths.status().message().find(why) != std::string::npos)
      << lengths.status().message() << "\nshould say\n"
      << why;
}

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// Of a data set whose documents have so many tokens each, of two bytes, half of them in a sequence
/// of their own.
std::string index_of(const std::vector<std::int32_t>& tokens) {
  std::string lengths;
  std::string places;
  std::string bounds = little_endian<std::int64_t>(0);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (const std::int32_t part : {tokens[i] / 2, tokens[i] - tokens[i] / 2}) {
      lengths += little_endian(part);
      places += little_endian(place);
      place += 2 * std::int64_t{part};
    }
    bounds += little_endian<std::int64_t>(2 * static_cast<std::int64_t>(i + 1));
  }
  return std::string("MMIDIDX\0\0", 9) + little_endian<std::uint64_t>(1) +
         little_endian<std::uint8_t>(8) + little_endian<std::uint64_t>(2 * tokens.size()) +
         little_endian<std::uint64_t>(tokens.size() + 1) + lengths + places + bounds;
}

TEST(LengthFiles, TextHasANumberOnEachLine) {
  EXPECT_EQ(lengths_in("a.txt", "1\n 4096\t\r\n\n4294967295").value(),
            (Lengths{1, 4096, 4294967295}));
  EXPECT_EQ(lengths_in("lengths", "007\n").value(), (Lengths{7}));
}

TEST(LengthFiles, AByteOrderMarkIsNoPartOfAFile) {
  EXPECT_EQ(lengths_in("a.txt",
                       "\xEF\xBB\xBF"
                       "5\n6\n")
                .value(),
            (Lengths{5, 6}));
  EXPECT_EQ(lengths_in("a.csv", "\xEF\xBB\xBFn,m\n5,6\n", "n").value(), (Lengths{5}));
  EXPECT_EQ(lengths_in("a.csv", "\xEF\xBB\xBF\"n\",m\n5,6\n", "n").value(), (Lengths{5}));
  expect_refused("a.txt",
                 "5\n\xEF\xBB\xBF"
                 "6\n",
                 "", "line 2: '\\xef\\xbb\\xbf6' is no number");
  expect_refused("a.txt",
                 "\xEF\xBB"
                 "5\n",
                 "", "line 1: '\\xef\\xbb5' is no number");
  expect_refused("a.txt", "\xEF\xBB\xBF", "", "no lengths in it");
}

TEST(LengthFiles, AnEndingMayBeInCapitals) {
  EXPECT_EQ(lengths_in("OK.CSV", "a,b\n1,2\n", "b").value(), (Lengths{2}));
  EXPECT_EQ(lengths_in("a.Csv", "a,b\n1,2\n", "b").value(), (Lengths{2}));
  EXPECT_EQ(lengths_in("A.IDX", index_of({17})).value(), (Lengths{17}));
  expect_refused("A.PARQUET", "PAR1", "", "a record of Parquet files has a length once");
}

TEST(LengthFiles, TextThatIsNoneIsNamedByLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "no lengths in it; expected a whole number of tokens on each line"},
      {"\n\n", "no lengths in it"},
      {"5\n0\n", "line 2: '0' is no length; a length is a whole number of tokens"},
      {"5\n\n-7\n", "line 3: '-7' is negative"},
      {"+5", "line 1: '+5' has a sign"},
      {"-0", "line 1: '-0' is negative"},
      {"4294967296", "line 1: '4294967296' is too large"},
      {"5\n12.5", "line 2: '12.5' is no number"},
      {"1 2", "line 1: '1 2' is no number"},
      {std::string("PK\x03\x04"), "line 1: 'PK\\x03\\x04' is no number"},
      {std::string(100, 'x'), "'" + std::string(40, 'x') + "...' is no number"},
      {"5\n" + std::string(kRowMaxBytes + 1, '1'), "line 2: longer than 1048576 bytes"},
  };
  for (const auto& [content, why] : cases) expect_refused("a.txt", content, "", why);
  expect_refused("a.txt", "5\n", "tokens", "only .csv files have columns");
  expect_refused("a.json", "", "", "such JSON files cannot be read yet; write the lengths as");
  expect_refused("a.parquet", "PAR1", "", "a record of Parquet files has a length once");
}

TEST(LengthFiles, ColumnsHaveNamesOrNumbers) {
  const std::string csv =
      "name,\"tokens, all\",n\r\n"
      "\"a \"\"b\"\"\",17, 1\r\n"
      "\"two\nlines, and a comma\",\"18\",2\r\n"
      "\n"
      "it\"s,19,3";
  EXPECT_EQ(lengths_in("a.csv", csv, "tokens, all").value(), (Lengths{17, 18, 19}));
  EXPECT_EQ(lengths_in("a.csv", csv, "2").value(), (Lengths{17, 18, 19}));
  EXPECT_EQ(lengths_in("a.csv", csv, "n").value(), (Lengths{1, 2, 3}));
  EXPECT_EQ(lengths_in("a.csv", "tokens\n5\n6\n").value(), (Lengths{5, 6}));
  EXPECT_EQ(lengths_in("a.csv", "5,1\n6,1\n", "1").value(), (Lengths{5, 6})) << "no heading";
  EXPECT_EQ(lengths_in("a.csv", "5\n6").value(), (Lengths{5, 6}));
}

TEST(LengthFiles, CsvThatHasNoneIsNamedByLine) {
  struct Case {
    std::string content, column, why;
  };
  const std::string two_lines = "a,b\n\"x\ny\",";
  const Case cases[] = {
      {"", "", "no lengths in it; expected rows of comma-separated fields"},
      {"a,b\n", "b", "no lengths in it"},
      {"a,b\n1,2\n", "", "line 1: there are 2 columns ('a', 'b'); say which has the lengths"},
      {"a,b\n1,2\n", "c", "line 1: no column is called 'c'; there are 'a', 'b'"},
      {"a,b,a\n1,2,3\n", "a", "line 1: 2 columns are called 'a' (columns 1 and 3); ask for"},
      {"a,a, a\n1,2,3\n", "a", "line 1: 3 columns are called 'a' (columns 1 and 2"},
      {"a,b\n1,2\n", "0", "no column is called '0'"},
      {"a,b\n1,2\n", "3", "line 1: 2 fields; the lengths are in column 3"},
      {"a,b\n1,2\n1\n", "b", "line 3: 1 fields; the lengths are in column 2"},
      {"a,b\n1,-2\n", "b", "line 2: '-2' is negative"},
      {"a,b\n1,\n", "b", "line 2: nothing stands here; a length is"},
      {two_lines + "0\n", "b", "line 2: '0' is no length"},
      {two_lines + "1\nz,q", "b", "line 4: 'q' is no number"},
      {"a,b\n\"1\"2,3\n", "b", "line 2: a comma or the end of the line must follow"},
      {"a,b\n1,\"3\n4,5\n", "b",
       "line 2: a field in quotes, of the row that begins here, has no end"},
      {"a,b\n1,\"" + std::string(kRowMaxBytes, 'x') + "\"", "b", "line 2: longer than 1048576"},
  };
  for (const auto& [content, column, why] : cases) expect_refused("a.csv", content, column, why);
}

TEST(LengthFiles, MegatronsIndexHasTheTokensOfItsDocuments) {
  EXPECT_EQ(lengths_in("a.idx", index_of({17, 1, 2147483647})).value(),
            (Lengths{17, 1, 2147483647}));
  EXPECT_EQ(lengths_in("a.idx", index_of({17, 0, 18})).value(), (Lengths{17, 18}))
      << "nobody trains on one without tokens";
}

TEST(LengthFiles, AWrongIndexIsNamedByOffset) {
  const std::string good = index_of({17, 18});
  const std::pair<std::string, std::string> cases[] = {
      {"17\n18\n", "offset 0: not the index of a Megatron data set: it would begin with MMIDIDX"},
      {good.substr(0, 20), "offset 20: the file ends within its head of 34 bytes"},
      {good.substr(0, good.size() - 1), "offset 105: the file ends too early: 4 sequences"},
  };
  for (const auto& [content, why] : cases)
    expect_refused("a.idx", content, "", why, ErrorKind::kCorruption);
  for (const std::string& none : {index_of({}), index_of({0})}) {
    expect_refused("a.idx", none, "",
                   "no lengths in it; expected at least one document with tokens");
  }
}

const sources::Tokenizer& bytes_tokenizer() {
  static const auto tokenizer = sources::make_bytes_tokenizer({.vocab = 256}).value();
  return *tokenizer;
}

Result<Lengths> record_lengths_in(const std::string& content,
                                  sources::RecordFields fields = sources::TextField{"text"}) {
  std::ofstream(path_of("r.jsonl"), std::ios::binary) << content;
  return read_lengths(
      {.path = path_of("r.jsonl"), .tokenizer = &bytes_tokenizer(), .fields = std::move(fields)});
}

TEST(LengthFiles, RecordsOfJsonLinesHaveAsManyTokensAsTheyAreGiven) {
  const std::string lines =
      "{\"text\": \"ab\"}\n"
      "\n"
      "{\"text\": \"\"}\n"
      "{\"q\": \"1\", \"text\": \"\u20ac\"}\r\n"
      "{\"text\": \"z\"}";
  EXPECT_EQ(record_lengths_in(lines).value(), (Lengths{2, 3, 1})) << "an empty record is none";
  EXPECT_EQ(
      record_lengths_in("{\"q\": \"abc\", \"a\": \"de\"}", sources::AnswerFields{"q", "a"}).value(),
      (Lengths{5}));
}

TEST(LengthFiles, CompressedJsonLinesAreReadToo) {
  // A raw block, and no checksum: RFC 8878, 3.1.1.
  std::string content = "\x28\xb5\x2f\xfd\x20\x0e\x71";
  content += std::string(2, '\0') + "{\"text\": \"ab\"}";
  const std::string path = path_of("r.JSONL.zst");
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(
      read_lengths(
          {.path = path, .tokenizer = &bytes_tokenizer(), .fields = sources::TextField{"text"}})
          .value(),
      (Lengths{2}));
}

/// A member of so many letters, as POSIX.1-1988 has it.
std::string tar_text(const std::string& name, std::size_t letters) {
  std::string member(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    member.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", letters));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char c : member) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  member[154] = '\0';
  return member + std::string(letters, 'x') + std::string(512 - letters, '\0');
}

TEST(LengthFiles, SamplesOfATarAreReadToo) {
  const std::string path = path_of("r.TAR");
  std::ofstream(path, std::ios::binary)
      << tar_text("a.txt", 5) << tar_text("b.txt", 7) << std::string(1024, '\0');
  const auto lengths_of = [&](const std::string& field) {
    return read_lengths(
        {.path = path, .tokenizer = &bytes_tokenizer(), .fields = sources::TextField{field}});
  };
  EXPECT_EQ(lengths_of("txt").value(), (Lengths{5, 7}));
  EXPECT_EQ(lengths_of("cap").status().message(),
            path + ": record 0 at offset 0: the sample has no member 'cap'");
}

TEST(LengthFiles, JsonLinesThatAreWrongAreNamedByRecordAndByte) {
  struct Case {
    std::string content, why;
    ErrorKind kind = ErrorKind::kInvalid;
  };
  const Case cases[] = {
      {"{\"text\": \"a\"}\n{\"text\": 5}\n", "r.jsonl: record 1 at offset 14: "},
      {"{\"text\": \"a\"}\n\n{\"text\"", "r.jsonl: record 1 at offset 15: "},
      {"{\"txt\": \"a\"}\n", "r.jsonl: record 0 at offset 0: "},
      {"", "no lengths in it; expected records of JSON Lines with tokens"},
      {"{\"text\": \"\"}\n", "no lengths in it"},
      {std::string("\x1f\x8b\x08\x00", 4), "r.jsonl: offset 0: ", ErrorKind::kCorruption},
  };
  for (const auto& [content, why, kind] : cases) {
    const Result<Lengths> lengths = record_lengths_in(content);
    ASSERT_TRUE(lengths.is(kind)) << why;
    EXPECT_TRUE(lengths.status().message().find(why) != std::string::npos)
        << lengths.status().message() << "\nshould say\n"
        << why;
  }
  expect_refused("a.jsonl", "{}", "", "has a length once it is tokenized; say who does");
  expect_refused("a.jsonl", "{}", "n", "only .csv files have columns");
  EXPECT_TRUE(record_lengths_in("{}", sources::TokenFields{"ids"}).is(ErrorKind::kInvalid))
      << "no ids in it";
}

TEST(LengthFiles, WhatCannotBeOpenedIsNamed) {
  const auto status_of = [](const std::string& path) {
    return read_lengths({.path = path}).status();
  };
  const Status missing = status_of(path_of("nowhere.txt"));
  EXPECT_EQ(missing.kind(), ErrorKind::kNotFound);
  EXPECT_EQ(missing.message(), path_of("nowhere.txt") + ": there is no such file");
  const Status folder = status_of(testing::TempDir());
  EXPECT_EQ(folder.kind(), ErrorKind::kInvalid);
  EXPECT_TRUE(folder.message().find("this name is a folder") != std::string::npos);
  if (geteuid() == 0) return;  // Whom nothing is forbidden.
  std::ofstream(path_of("locked.txt")) << "5\n";
  chmod(path_of("locked.txt").c_str(), 0);
  EXPECT_EQ(status_of(path_of("locked.txt")).kind(), ErrorKind::kInvalid);
}

/// Damage is found or leaves lengths; nothing else happens.
RC_GTEST_PROP(LengthFiles, AnyBytesGiveLengthsOrAnError, (const std::string& bytes)) {
  const std::string good = index_of({17, 18});
  const std::size_t at = *rc::gen::inRange<std::size_t>(0, good.size());
  for (const std::string name : {"p.txt", "p.csv", "p.idx"}) {
    const Result<Lengths> lengths =
        lengths_in(name, name == "p.idx" ? good.substr(0, at) + bytes + good.substr(at) : bytes);
    if (!lengths.is_ok()) {
      RC_ASSERT(lengths.is(ErrorKind::kInvalid) || lengths.is(ErrorKind::kCorruption));
      continue;
    }
    RC_ASSERT(!lengths.value().empty());
    for (const std::uint32_t length : lengths.value()) RC_ASSERT(length > 0);
  }
}

}  // namespace
}  // namespace batchloom::simulator
