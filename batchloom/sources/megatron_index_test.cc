// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/megatron_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

/// The parts of an index, to be told lies about.
struct IndexParts {
  std::uint64_t version = 1;
  std::uint8_t type = 4;
  std::uint64_t sequences = 4;
  std::uint64_t bounds = 3;
  std::vector<std::int32_t> lengths = {2, 1, 0, 3};
  std::vector<std::int64_t> pointers = {0, 8, 12, 12};
  std::vector<std::int64_t> bound_list = {0, 1, 4};
  std::string rest = {};
};

template <class T>
std::string stored(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string bytes_of(const IndexParts& parts) {
  return std::string("MMIDIDX\0\0", 9) + stored<std::uint64_t>({parts.version}) +
         stored<std::uint8_t>({parts.type}) +
         stored<std::uint64_t>({parts.sequences, parts.bounds}) + stored(parts.lengths) +
         stored(parts.pointers) + stored(parts.bound_list) + parts.rest;
}

Result<MegatronIndex> open_index(const std::string& bytes) {
  return MegatronIndex::open(read_bytes("a.idx", to_bytes(bytes)), {});
}

Result<std::vector<MegatronDocument>> scanned(MegatronIndex& index) {
  std::vector<MegatronDocument> documents;
  BL_RETURN_IF_ERROR(index.scan({}, [&](const MegatronDocument& document) {
    documents.push_back(document);
    return Status::ok();
  }));
  return documents;
}

void expect_fault(const Status& status, const std::string& why) {
  ASSERT_TRUE(status.is(ErrorKind::kCorruption)) << why << ": " << status.to_string();
  EXPECT_EQ(status.message(), "a.idx: offset " + why);
}

TEST(MegatronIndex, ScanningGivesWhatAskingGives) {
  for (const std::string name : {"u8", "i64", "modes", "wide", "empty"}) {
    MegatronIndex index =
        open_index(std::string(as_text(fixture_bytes("megatron_" + name + ".idx")))).value();
    const auto documents = scanned(index).value();
    ASSERT_EQ(documents.size(), index.documents());
    for (std::uint64_t i = 0; i < documents.size(); ++i) {
      const MegatronDocument document = index.document(i, {}).value();
      EXPECT_EQ(document.place, documents[i].place);
      EXPECT_EQ(document.tokens, documents[i].tokens);
      EXPECT_EQ(document.mode, documents[i].mode);
    }
  }
}

TEST(MegatronIndex, TheHeadIsLookedAt) {
  const std::string good = bytes_of({});
  ASSERT_TRUE(open_index(good).is_ok());
  const std::pair<std::string, std::string> cases[] = {
      {"", "0: the file is empty; expected the index of a Megatron data set"},
      {"17\n18\n", "0: not the index of a Megatron data set: it would begin with MMIDIDX"},
      {"MMIDIDX", "7: the file ends within its head of 34 bytes"},
      {good.substr(0, 33), "33: the file ends within its head of 34 bytes"},
      {bytes_of({.version = 2}), "9: version 2; expected 1"},
      {bytes_of({.type = 0}), "17: 0 as the type of an id; expected 1 to 5 or 8"},
      {bytes_of({.type = 9}), "17: 9 as the type of an id; expected 1 to 5 or 8"},
      {bytes_of({.type = 6}), "17: 6 as the type of an id, a floating-point one"},
      {bytes_of({.type = 7}), "17: 7 as the type of an id, a floating-point one"},
  };
  for (const auto& [bytes, why] : cases) expect_fault(open_index(bytes).status(), why);
}

TEST(MegatronIndex, CountsAreThoseOfTheFilesSize) {
  const std::string good = bytes_of({});
  ASSERT_EQ(good.size(), 106U);
  const auto early = [](std::uint64_t at, std::uint64_t sequences, std::uint64_t bounds) {
    return fmt::format(
        "{}: the file ends too early: {} sequences and {} bounds of documents, which "
        "it states at offset 18, take more bytes",
        at, sequences, bounds);
  };
  const auto late = [](std::uint64_t at, std::uint64_t sequences, std::uint64_t bounds) {
    return fmt::format(
        "{}: the file ends too late: {} sequences and {} bounds of documents, which "
        "it states at offset 18, take fewer bytes",
        at, sequences, bounds);
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::pair<std::string, std::string> cases[] = {
      {good.substr(0, 105), early(105, 4, 3)},
      {good + "1", late(107, 4, 3)},
      {good + "12345", late(111, 4, 3)},
      {bytes_of({.sequences = 5}), early(106, 5, 3)},
      {bytes_of({.sequences = kMost}), early(106, kMost, 3)},
      {bytes_of({.bounds = kMost}), early(106, 4, kMost)},
      {bytes_of({.sequences = kMost / 12 + 1, .bounds = 0}), early(106, kMost / 12 + 1, 0)},
      {bytes_of({.bounds = 2}), late(106, 4, 2)},
      {bytes_of({.bounds = 0, .bound_list = {}}),
       "26: no bounds of documents; expected at least the first, which is 0"},
  };
  for (const auto& [bytes, why] : cases) expect_fault(open_index(bytes).status(), why);
  EXPECT_TRUE(open_index(bytes_of({.rest = std::string(4, '\0')})).is_ok()) << "with modes";
}

TEST(MegatronIndex, TheEndsOfItsListsAreLookedAt) {
  const std::pair<IndexParts, std::string> cases[] = {
      {{.bound_list = {1, 1, 4}}, "82: the first document begins at sequence 1; expected 0"},
      {{.bound_list = {-1, 1, 4}}, "82: the first document begins at sequence -1; expected 0"},
      {{.bound_list = {0, 1, 3}}, "98: the last document ends at sequence 3; there are 4"},
      {{.bound_list = {0, 1, 5}}, "98: the last document ends at sequence 5; there are 4"},
      {{.pointers = {4, 8, 12, 12}}, "50: the first sequence begins at 4; expected 0"},
      {{.pointers = {0, 8, 12, -1}}, "74: the last sequence begins at -1 and has 3 tokens"},
      {{.lengths = {2, 1, 0, -3}}, "74: the last sequence begins at 12 and has -3 tokens"},
      {{.sequences = 0, .bounds = 1, .lengths = {}, .pointers = {}, .bound_list = {7}},
       "34: the first document begins at sequence 7; expected 0"},
  };
  for (const auto& [parts, why] : cases) expect_fault(open_index(bytes_of(parts)).status(), why);
}

/// A lie about one document is found by whoever asks for it, and by a scan; the other one is read.
TEST(MegatronIndex, ADocumentsOwnEntriesAreLookedAt) {
  struct Case {
    IndexParts parts;
    std::uint64_t document;
    std::string why;
  };
  const Case cases[] = {
      {{.bound_list = {0, 5, 4}},
       0,
       "82: document 0 begins at sequence 0 and ends at 5; there are 4"},
      {{.bound_list = {0, -1, 4}},
       1,
       "90: document 1 begins at sequence -1 and ends at 4; there are 4"},
      {{.lengths = {2, -1, 0, 3}}, 1, "38: sequence 1 has -1 tokens"},
      {{.lengths = {3, 1, 0, 3}},
       0,
       "58: sequence 1 begins at 8; by its place and its length, the one before ends at 12"},
      {{.pointers = {0, 8, 13, 12}},
       1,
       "66: sequence 2 begins at 13; by its place and its length, the one before ends at 12"},
      {{.pointers = {0, 12, 12, 12}},
       1,
       "66: sequence 2 begins at 12; by its place and its length, the one before ends at 16"},
      {{.pointers = {0, 1 << 20, 12, 12}},
       1,
       "58: sequence 1 begins at 1048576; the data end at 24"},
      {{.pointers = {0, -8, 12, 12}}, 1, "58: sequence 1 begins at -8; the data end at 24"},
  };
  for (const Case& wrong : cases) {
    MegatronIndex index = open_index(bytes_of(wrong.parts)).value();
    expect_fault(index.document(wrong.document, {}).status(), wrong.why);
    EXPECT_TRUE(scanned(index).is(ErrorKind::kCorruption)) << wrong.why;
  }
}

TEST(MegatronIndex, ListsAreLongerThanItsBuffer) {
  constexpr std::int32_t kSequences = 50'000;
  IndexParts parts{.sequences = kSequences,
                   .bounds = 3,
                   .lengths = std::vector<std::int32_t>(kSequences, 1),
                   .pointers = {},
                   .bound_list = {0, kSequences - 1, kSequences}};
  for (std::int32_t i = 0; i < kSequences; ++i) parts.pointers.push_back(std::int64_t{i} * 4);
  MegatronIndex index = open_index(bytes_of(parts)).value();
  EXPECT_EQ(index.document(0, {}).value().tokens, std::uint64_t{kSequences} - 1);
  EXPECT_EQ(index.document(1, {}).value().place.offset_bytes, (std::uint64_t{kSequences} - 1) * 4);
  EXPECT_EQ(scanned(index).value().size(), 2U);
  parts.pointers[kSequences / 2] += 4;
  MegatronIndex wrong = open_index(bytes_of(parts)).value();
  EXPECT_TRUE(wrong.document(0, {}).is(ErrorKind::kCorruption));
}

TEST(MegatronIndex, AnErrorOfTheCallerEndsAScan) {
  MegatronIndex index = open_index(bytes_of({})).value();
  int calls = 0;
  const Status status = index.scan({}, [&](const MegatronDocument&) {
    ++calls;
    return Status::exhausted("enough");
  });
  EXPECT_TRUE(status.is(ErrorKind::kExhausted));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace batchloom::sources
