// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tar_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/picture_testing.h"
#include "batchloom/sources/reader_conformance_testing.h"
#include "batchloom/sources/tar_fields.h"
#include "batchloom/sources/tar_scan.h"

namespace batchloom::sources {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kBlock = 512;

const Tokenizer& tar_ids() {
  static const auto tokenizer = make_bytes_tokenizer({.vocab = 32'000}).value();
  return *tokenizer;
}

const TarSettings kTextMember = {.fields = TextField{"txt"}};
const TarSettings kAnswerMembers = {.fields = AnswerFields{"q.txt", "json.a"},
                                    .loss_on = LossOn::kAnswer};
const TarSettings kTokenMembers = {.fields = TokenFields{"ids.json", "mask.json"},
                                   .loss_on = LossOn::kMask};

Result<std::unique_ptr<ShardReader>> open_as(std::unique_ptr<ByteReader> bytes,
                                             const TarSettings& settings,
                                             Compression compression = Compression::kNone) {
  return open_tar_file({.bytes = std::move(bytes), .compression = compression}, settings, tar_ids(),
                       {});
}

/// Whether nothing says that a byte was changed: only headers have a checksum, and the mark of the
/// end is known.
bool is_unchecked(const Bytes& tar, std::size_t offset) {
  const std::string_view block = as_text(tar).substr(offset / kBlock * kBlock, kBlock);
  const bool is_header = block.substr(257, 5) == "ustar";
  return !is_header && block.find_first_not_of('\0') != std::string_view::npos;
}

ReaderFormat tar_format(const std::string& name, const TarSettings& settings) {
  const Bytes tar = fixture_bytes("../tars/" + name + ".tar");
  return {.name = "tar_" + name,
          .files = {tar},
          .empty_files = {fixture_bytes("../tars/empty.tar")},
          .records = fixture_records("../tars/" + name),
          .open = [=](ShardFiles files) { return open_as(std::move(files[0]), settings); },
          .may_change_records = [=](std::size_t, std::size_t at) { return is_unchecked(tar, at); }};
}

/// With the offsets of the file as it was, as a sidecar index keeps them.
ReaderFormat indexed_tar(const std::string& name, const TarSettings& settings) {
  ReaderFormat format = tar_format(name, settings);
  const auto file = read_bytes("", format.files[0]);
  const auto offsets = keep_offsets("", 1 << 20, [&](const PlaceSink& found) {
                         return scan_tar(*stream_of(*file), {}, found);
                       }).value();
  format.open = [=](ShardFiles files) -> Result<std::unique_ptr<ShardReader>> {
    if (files[0]->size_bytes() == 2 * kBlock) return open_as(std::move(files[0]), settings);
    return open_tar(std::move(files[0]), offsets, settings, tar_ids());
  };
  format.name = "indexed_tar_" + name;
  return format;
}

ReaderFormat compressed_tar(const std::string& ending, Compression compression) {
  ReaderFormat format = tar_format("ustar", kTextMember);
  format.name = "tar_" + std::string(to_string(compression));
  format.files = {fixture_bytes("../tars/ustar.tar" + ending)};
  format.empty_files = {fixture_bytes("../tars/empty.tar" + ending)};
  format.open = [=](ShardFiles files) {
    return open_as(std::move(files[0]), kTextMember, compression);
  };
  format.may_change_records = [](std::size_t, std::size_t) { return false; };
  return format;
}

INSTANTIATE_TEST_SUITE_P(Tar, ReaderConformance,
                         testing::Values(tar_format("ustar", kTextMember),
                                         tar_format("gnu", kAnswerMembers),
                                         tar_format("pax", kTokenMembers),
                                         indexed_tar("ustar", kTextMember),
                                         compressed_tar(".gz", Compression::kGzip),
                                         compressed_tar(".zst", Compression::kZstd)),
                         format_name);

struct TestMember {
  std::string path;
  std::string data;
  char type = '0';
};

/// As POSIX.1-1988 has it.
std::string tar_header(const TestMember& member) {
  std::string block(kBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  put(0, member.path);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", member.type == '0' ? member.data.size() : 0));
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string_view(&member.type, 1));
  if (member.type != '0') put(157, member.data);
  put(257, "ustar\00000"s);
  const auto sum = std::accumulate(block.begin(), block.end(), 0U, [](unsigned before, char byte) {
    return before + static_cast<unsigned char>(byte);
  });
  put(148, fmt::format("{:06o}", sum) + '\0');
  return block;
}

std::string tar_members(const std::vector<TestMember>& members) {
  std::string tar;
  for (const TestMember& member : members) {
    tar += tar_header(member);
    if (member.type != '0') continue;
    tar += member.data;
    tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  return tar;
}

std::string tar_of(const std::vector<TestMember>& members) {
  return tar_members(members) + std::string(2 * kBlock, '\0');
}

/// What each record holds as text, or why it is bad.
std::vector<std::string> records_of(const std::vector<TestMember>& members,
                                    const TarSettings& settings = kTextMember) {
  const auto reader = open_as(read_bytes("a.tar", to_bytes(tar_of(members))), settings).value();
  std::vector<std::string> records;
  Record record;
  for (std::uint64_t i = 0; i < reader->records(); ++i) {
    const auto bad = read_record(*reader, i, record).value();
    std::string text;
    for (const TokenId id : record.ids) text += static_cast<char>(id);
    records.push_back(bad ? fmt::format("{}: {}", to_string(bad->reason), bad->message) : text);
  }
  return records;
}

std::string bad_of(const std::vector<TestMember>& members,
                   const TarSettings& settings = kTextMember) {
  const std::vector<std::string> records = records_of(members, settings);
  EXPECT_EQ(records.size(), 1U);
  return records.at(0);
}

using Records = std::vector<std::string>;

TEST(TarReader, NeighboursWithOneKeyAreARecord) {
  EXPECT_EQ(records_of({{"a.txt", "A"}, {"b.txt", "B"}}), (Records{"A", "B"}));
  EXPECT_EQ(records_of({{"a.jpg", "x"}, {"a.TxT", "A"}, {"b.txt", "B"}, {"b.jpg", "y"}}),
            (Records{"A", "B"}));
  EXPECT_EQ(records_of({{"x/a.txt", "A"}, {"y/a.txt", "B"}}), (Records{"A", "B"}))
      << "folders are part of a key";
  EXPECT_EQ(records_of({{"v1.0/a.txt", "A"}, {"v1.0/a.cls", "0"}}), Records{"A"})
      << "dots in folders are not";
  EXPECT_EQ(records_of({{"a.b.txt", "B"}, {"a.txt", "A"}}), Records{"A"})
      << "the key ends at the first dot";
  EXPECT_EQ(
      records_of(
          {{"a.jpg", "x"}, {"d/", "", '5'}, {"README", "r"}, {"._a.txt", "h"}, {"a.txt", "A"}}),
      Records{"A"})
      << "what belongs to no record parts no neighbours";
  EXPECT_EQ(records_of({{"README", "r"}, {".txt", "h"}}), Records{});
}

TEST(TarReader, AKeyThatComesAgainIsAnotherRecord) {
  EXPECT_EQ(records_of({{"a.txt", "A"}, {"b.txt", "B"}, {"a.txt", "C"}}), (Records{"A", "B", "C"}));
}

TEST(TarReader, ASampleWithoutAPartOrWithOneTwiceIsABadRecord) {
  EXPECT_EQ(records_of({{"a.jpg", "x"}, {"b.txt", "B"}}),
            (Records{"field: a.tar: record 0 at offset 0: the sample has no member 'txt'", "B"}));
  EXPECT_EQ(bad_of({{"a.txt", "A"}, {"a.TXT", "B"}}),
            "field: a.tar: record 0 at offset 0: the sample has member 'txt' twice");
  EXPECT_THAT(bad_of({{"a.txt", "A"}, {"a.jpg", "1"}, {"a.jpg", "2"}}),
              HasSubstr("has member 'jpg' twice"))
      << "a part that nobody asks for, too";
  EXPECT_THAT(bad_of({{"a.txt", "b.txt", '2'}, {"a.jpg", "x"}}),
              HasSubstr("member 'txt' is no file but a link or a device"));
  EXPECT_THAT(bad_of({{"a.txt", "b.txt", '1'}}), HasSubstr("no file but a link or a device"));
  EXPECT_EQ(records_of({{"a.txt", "A"}, {"a.jpg", "b.jpg", '2'}}), Records{"A"});
}

TEST(TarReader, TextIsUtf8) {
  EXPECT_EQ(records_of({{"a.txt", "\xef\xbb\xbfS\xc3\xbc\n"}, {"b.txt", ""}}),
            (Records{"S\xc3\xbc\n", ""}));
  EXPECT_THAT(bad_of({{"a.txt", "\xff"}}), HasSubstr("encoding: a.tar: record 0 at offset 0: "
                                                     "member 'txt': not valid UTF-8"));
  EXPECT_THAT(bad_of({{"a.txt", "\xff\xfe"s + "A\0"s}}), HasSubstr("in UTF-16; convert it"));
}

TEST(TarReader, FieldsNameMembersAndFieldsOfThoseThatAreJson) {
  EXPECT_EQ(member_field("txt"), (MemberField{"txt", ""}));
  EXPECT_EQ(member_field("Q.TXT"), (MemberField{"q.txt", ""}));
  EXPECT_EQ(member_field("ids.json"), (MemberField{"ids.json", ""}));
  EXPECT_EQ(member_field("JSON.Caption"), (MemberField{"json", "Caption"}));
  EXPECT_EQ(member_field("meta.json.a.b"), (MemberField{"meta.json", "a.b"}));
  EXPECT_EQ(member_field("jsonl.a"), (MemberField{"jsonl.a", ""}));

  const TarSettings caption = {.fields = TextField{"json.caption"}};
  EXPECT_EQ(records_of({{"a.json", R"({"caption":"A","id":1})"}, {"a.txt", "x"}}, caption),
            Records{"A"});
  EXPECT_THAT(bad_of({{"a.json", R"({"id":1})"}}, caption),
              HasSubstr("field: a.tar: record 0 at offset 0: member 'json': field 'caption' is "
                        "missing"));
  EXPECT_THAT(bad_of({{"a.json", R"({"caption":"A",)"}}, caption), HasSubstr("syntax: "));
  EXPECT_THAT(bad_of({{"a.txt", "A"}}, caption), HasSubstr("the sample has no member 'json'"));
  const TarSettings pair = {.fields = AnswerFields{"json.q", "json.a"}, .loss_on = LossOn::kAnswer};
  EXPECT_EQ(records_of({{"a.json", R"({"a":"B","q":"A"})"}}, pair), Records{"AB"})
      << "one member may have two fields";
}

TEST(TarReader, ListsOfIdsAreMembersOrFieldsOfThem) {
  const auto ids = [](const std::string& list) {
    return records_of({{"a.ids.json", list}, {"a.mask.json", "[1,0]"}}, kTokenMembers).at(0);
  };
  EXPECT_EQ(ids(" [65,66]\n"), "AB");
  EXPECT_THAT(ids("[65]"), HasSubstr("1 ids in 'ids.json' and 2 marks in 'mask.json'"));
  EXPECT_THAT(ids("[65,66] 1"),
              HasSubstr("syntax: a.tar: record 0 at offset 0: member 'ids.json': no list alone"));
  EXPECT_THAT(ids("[65,66]]"),
              HasSubstr("syntax: a.tar: record 0 at offset 0: member 'ids.json': no list alone"));
  EXPECT_THAT(ids("[65,66"), HasSubstr("syntax: "));
  EXPECT_THAT(ids(R"({"a":1})"), HasSubstr("field 'ids.json' is an object; expected a list"));
  EXPECT_THAT(ids("17"), HasSubstr("field 'ids.json' is a number; expected a list"));
  EXPECT_THAT(ids(""), HasSubstr("syntax: "));
  EXPECT_THAT(ids("[65,32000]"), HasSubstr("token_id: "));
  const TarSettings fields = {.fields = TokenFields{"json.i", "m.json.m"},
                              .loss_on = LossOn::kMask};
  EXPECT_EQ(records_of({{"a.json", R"({"i":[65,66]})"}, {"a.m.json", R"({"m":[0,1]})"}}, fields),
            Records{"AB"});
  EXPECT_THAT(bad_of({{"a.json", R"({"i":[65]})"}, {"a.m.json", R"({"m":[2]})"}}, fields),
              HasSubstr("member 'm.json': field 'm[0]' is 2; expected 0 or 1"));
}

// --- pictures ----------------------------------------------------------------------------------

/// Of 8 x 16 pixels: 2 cells of 8.
std::string small_picture() {
  const PngPixels pixels{.size = {.width_px = 16, .height_px = 8}, .samples = Bytes(3 * 16 * 8)};
  return std::string(as_text(png_of(pixels)));
}

TarSettings with_pictures(RecordFields fields, LossOn loss_on, TokenId token = 300) {
  return {
      .fields = std::move(fields),
      .loss_on = loss_on,
      .pictures = {
          .field = "png", .rules = {.patch_px = 4, .merge = 2, .max_patches = 64}, .token = token}};
}

TEST(TarReader, APictureStandsBeforeTheTextAndHasNoLabels) {
  const auto tokenizer = make_bytes_tokenizer({.vocab = 400, .begin = {310}, .end = {311}}).value();
  const std::vector<TestMember> members = {
      {"1.txt", "AB"}, {"1.q.txt", "C"}, {"1.png", small_picture()}};
  const auto read = [&](const TarSettings& settings, std::vector<RecordPicture>& pictures) {
    const auto reader = open_tar_file({.bytes = read_bytes("a.tar", to_bytes(tar_of(members)))},
                                      settings, *tokenizer, {})
                            .value();
    Record record;
    EXPECT_EQ(read_record(*reader, 0, record).value(), std::nullopt);
    EXPECT_EQ(reader->read_pictures(0, {}, pictures).value(), std::nullopt);
    return record;
  };
  std::vector<RecordPicture> pictures;
  const Record all = read(with_pictures(TextField{"txt"}, LossOn::kAll), pictures);
  EXPECT_THAT(all.ids, ElementsAre(310, 300, 300, 'A', 'B', 311));
  EXPECT_THAT(all.loss_mask, ElementsAre(1, 0, 0, 1, 1, 1));
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].token, 1U);
  EXPECT_EQ(pictures[0].grid, (PictureGrid{.rows = 1, .columns = 2, .unit_px = 8}));
  EXPECT_EQ(as_text(pictures[0].encoded), small_picture());

  const Record answer =
      read(with_pictures(AnswerFields{"q.txt", "txt"}, LossOn::kAnswer), pictures);
  EXPECT_THAT(answer.ids, ElementsAre(310, 300, 300, 'C', 'A', 'B', 311));
  EXPECT_THAT(answer.loss_mask, ElementsAre(0, 0, 0, 0, 1, 1, 1));

  EXPECT_EQ(read(kTextMember, pictures).ids.size(), 4U);
  EXPECT_TRUE(pictures.empty()) << "nobody asked for them";
}

TEST(TarReader, WhatIsNoPictureMakesABadRecord) {
  const TarSettings settings = with_pictures(TextField{"txt"}, LossOn::kAll);
  EXPECT_THAT(bad_of({{"1.txt", "A"}}, settings),
              HasSubstr("field: a.tar: record 0 at offset 0: the sample has no member 'png'"));
  EXPECT_THAT(bad_of({{"1.txt", "A"}, {"1.png", ""}}, settings),
              HasSubstr("picture: a.tar: record 0 at offset 0: member 'png': "));
  EXPECT_THAT(bad_of({{"1.txt", "A"}, {"1.png", "GIF89a and so on"}}, settings),
              HasSubstr("member 'png': "));
  const TarSettings as_text = with_pictures(TextField{"txt"}, LossOn::kAll, 'B');
  EXPECT_THAT(
      bad_of({{"1.txt", "AB"}, {"1.png", small_picture()}}, as_text),
      HasSubstr("token_id: a.tar: record 0 at offset 0: token 1: id 66 stands for pictures"));
}

TEST(TarReader, PicturesThatCannotBeAreRefused) {
  const auto refusal = [](const TarSettings& settings) {
    return open_as(read_bytes("a.tar", to_bytes(tar_of({}))), settings).status().to_string();
  };
  EXPECT_THAT(refusal(with_pictures(TextField{"txt"}, LossOn::kAll, 32'000)),
              HasSubstr("image.token: 32000 is outside of the vocabulary of 32000 ids"));
  EXPECT_THAT(refusal(with_pictures(TextField{"png"}, LossOn::kAll)),
              HasSubstr("'png' is named as a picture and as a text"));
  EXPECT_THAT(refusal(with_pictures(TokenFields{"ids.json"}, LossOn::kAll)),
              HasSubstr("a picture goes with a text"));
  TarSettings of_json = with_pictures(TextField{"txt"}, LossOn::kAll);
  of_json.pictures.field = "json.picture";
  EXPECT_THAT(refusal(of_json), HasSubstr("a picture is a member of its own"));
}

TEST(TarReader, ALargeMemberMakesABadRecord) {
  TarSettings settings = kTextMember;
  settings.limits.max_record_bytes = 2 * kBlock;
  EXPECT_EQ(records_of({{"a.txt", std::string(kBlock, 'x')}}, settings).at(0).size(), kBlock);
  EXPECT_THAT(bad_of({{"a.txt", std::string(kBlock + 1, 'x')}}, settings),
              HasSubstr("too_large: a.tar: record 0 at offset 0: 1536 bytes"));
}

Status fault_of(const std::string& tar) {
  return open_as(read_bytes("a.tar", to_bytes(tar)), kTextMember).status();
}

TEST(TarReader, WhatIsNoWholeTarIsAFaultOfTheShard) {
  const std::string members = tar_members({{"a.txt", "A"}, {"b.txt", "B"}});
  const std::string end(2 * kBlock, '\0');
  EXPECT_TRUE(fault_of(members + end).is_ok());
  EXPECT_TRUE(fault_of(members + end + std::string(100'000, '\0')).is_ok());
  std::string changed = members + end;
  changed[2 * kBlock] = 'x';
  const std::pair<std::string, std::string> faults[] = {
      {"", "a.tar: offset 0: tar: "},
      {std::string(3'000, 'x'), "a.tar: offset 0: tar: "},
      {R"({"text":"a"})", "a.tar: offset 0: tar: "},
      {changed, "a.tar: offset 1024: tar: Damaged tar archive"},
      {members, "a.tar: offset 2048: tar: the file ends without the mark of an archive's end"},
      {members.substr(0, 1536 + 1), "a.tar: offset 1537: tar: Truncated"},
      {members.substr(0, 1024 + 100), "a.tar: offset 1124: tar: Truncated"},
      {members + end + members + end, "a.tar: offset 2048: tar: the archive ends here, and"},
      {members + end + std::string(200'000, '\0') + "x",
       "a.tar: offset 2048: tar: the archive ends"},
  };
  for (const auto& [tar, what] : faults) {
    const Status status = fault_of(tar);
    EXPECT_EQ(status.kind(), ErrorKind::kCorruption) << what;
    EXPECT_THAT(status.message(), HasSubstr(what));
  }
}

/// Counts what is read of it.
class CountedTar final : public ByteReader {
 public:
  CountedTar(const std::string& tar, std::uint64_t& bytes)
      : file_(read_bytes("a.tar", to_bytes(tar))), bytes_(bytes) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    bytes_ += out.size();
    return file_->read_at(offset, out, call);
  }

 private:
  std::unique_ptr<ByteReader> file_;
  std::uint64_t& bytes_;
};

TEST(TarReader, OneRecordCostsNoMoreThanItself) {
  std::vector<TestMember> members;
  for (int i = 0; i < 20; ++i) {
    members.push_back({fmt::format("{}.jpg", i), std::string(1 << 20, 'j')});
    members.push_back({fmt::format("{}.txt", i), fmt::format("text {}", i)});
  }
  std::uint64_t bytes = 0;
  const auto reader =
      open_as(std::make_unique<CountedTar>(tar_of(members), bytes), kTextMember).value();
  EXPECT_LT(bytes, 42U * (64 << 10)) << "a scan steps over what members hold";
  ASSERT_EQ(reader->records(), 20U);
  bytes = 0;
  Record record;
  ASSERT_FALSE(read_record(*reader, 19, record).value().has_value());
  EXPECT_EQ(record.ids.size(), 7U);
  EXPECT_LE(bytes, 2U * (64 << 10)) << "of a picture that nobody asks for, little is read";
}

class OnePlace final : public RecordOffsets {
 public:
  explicit OnePlace(RecordPlace place) : place_(place) {}
  std::uint64_t count() const override { return 1; }
  RecordPlace place(std::uint64_t) const override { return place_; }

 private:
  RecordPlace place_;
};

TEST(TarReader, OffsetsOfAnotherTarAreAFaultOfTheShard) {
  const std::string tar = tar_of({{"README", "r"}, {"a.txt", "A"}, {"b.txt", "B"}});
  const auto read_at = [&](const RecordPlace& place) {
    Record record;
    const auto reader = open_tar(read_bytes("a.tar", to_bytes(tar)),
                                 std::make_shared<OnePlace>(place), kTextMember, tar_ids())
                            .value();
    return read_record(*reader, 0, record);
  };
  EXPECT_FALSE(read_at({1024, 1024}).value().has_value());
  const RecordPlace wrong[] = {
      {0, 1024},                  // No sample.
      {1024, 2048},               // Two of them.
      {1024, 700},                // Not to the end of the data.
      {1536, 1024},               // Within one.
      {3072, 1024},               // The mark.
      {tar.size(), 1},            // Beyond the end.
      {~std::uint64_t{0}, 512},   //
      {1024, ~std::uint64_t{0}},  //
  };
  for (const RecordPlace& place : wrong) {
    EXPECT_TRUE(read_at(place).is(ErrorKind::kCorruption)) << place.offset_bytes;
  }
}

}  // namespace
}  // namespace batchloom::sources
