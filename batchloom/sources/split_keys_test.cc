// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/split_keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"

namespace batchloom::sources {
namespace {

using objstore::says;

class SplitKeysTest : public testing::Test {
 protected:
  std::string write(const SplitKeysHeader& header) {
    const auto writer = SplitKeysWriter::create(*ops_, path_, header).value();
    for (std::uint64_t i = 0; i < header.records; ++i) {
      EXPECT_TRUE(writer->append(mix64(i)).is_ok());
    }
    EXPECT_TRUE(writer->finish().is_ok());
    return bytes();
  }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  objstore::ScratchFolder scratch_;
  const std::unique_ptr<objstore::FileOps> ops_ = objstore::make_posix_file_ops();
  const std::string path_ = split_keys_path(scratch_.path() + "/docs.jsonl", "");
  const SplitKeysHeader header_ = {
      .shard = {.size_bytes = 123'456, .modified_ns = 7, .ends_checksum = 99},
      .rule_digest = 0x1122334455667788,
      .records = kSplitKeysBlock + 3};
};

TEST_F(SplitKeysTest, WhatWasAppendedIsTold) {
  EXPECT_EQ(path_, scratch_.path() + "/docs.jsonl.blkeys");
  EXPECT_TRUE(is_split_keys_path(path_));
  write(header_);
  const auto keys = SplitKeys::open(path_, header_).value();
  for (const std::uint64_t i : {std::uint64_t{0}, kSplitKeysBlock - 1, kSplitKeysBlock + 2}) {
    EXPECT_EQ(keys->key(i).value(), mix64(i)) << i;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/.blidx.tmp"));
}

TEST_F(SplitKeysTest, NoRecordsNoKeys) {
  SplitKeysHeader none = header_;
  none.records = 0;
  EXPECT_EQ(write(none).size(), kSplitKeysHeaderBytes);
  EXPECT_TRUE(SplitKeys::open(path_, none).is_ok());
}

TEST_F(SplitKeysTest, TheBytesAreThoseOfThePage) {
  SplitKeysHeader two = header_;
  two.records = 2;
  std::string hex;
  for (const char c : write(two)) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  EXPECT_EQ(hex,
            "424c534b0100000040e201000000000007000000000000006300000000000000"
            "88776655443322110200000000000000000000000000000000000000228e02ae"
            "0000000000000000e5050b101d169256c0c2b893");
}

TEST_F(SplitKeysTest, OthersThanThoseThatAreWantedAreNone) {
  EXPECT_TRUE(SplitKeys::open(path_, header_).is(ErrorKind::kNotFound));
  write(header_);
  const auto refused = [&](auto change, std::string_view why) {
    SplitKeysHeader other = header_;
    change(other);
    const auto opened = SplitKeys::open(path_, other);
    EXPECT_TRUE(opened.is(ErrorKind::kNotFound)) << why;
    EXPECT_TRUE(says(opened.status(), std::string(why))) << opened.status().to_string();
  };
  refused([](auto& other) { other.shard.size_bytes += 1; }, "the file grew from");
  refused([](auto& other) { other.shard.ends_checksum += 1; }, "since they were made");
  refused([](auto& other) { other.rule_digest += 1; }, "made of something else");
  refused([](auto& other) { other.records += 1; }, "records, and there are");
  std::string later = bytes();
  later[4] = 2;
  put(later);
  EXPECT_TRUE(says(SplitKeys::open(path_, header_).status(), "format version 2"));
}

TEST_F(SplitKeysTest, EveryDamagedByteIsFound) {
  SplitKeysHeader few = header_;
  few.records = 3;
  const std::string good = write(few);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    put(bad);
    const auto opened = SplitKeys::open(path_, few);
    EXPECT_FALSE(opened.is_ok() && (*opened)->key(0).is_ok()) << i;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    put(good.substr(0, size));
    EXPECT_TRUE(SplitKeys::open(path_, few).is(ErrorKind::kCorruption)) << size;
  }
}

TEST_F(SplitKeysTest, AKeyOfContentIsOfItsIds) {
  const std::vector<TokenId> ids = {5, 258, 65'535};
  EXPECT_EQ(content_key(ids), content_key(std::vector<TokenId>{5, 258, 65'535}));
  EXPECT_NE(content_key(ids), content_key(std::vector<TokenId>{5, 258}));
  EXPECT_NE(content_key(ids), content_key(std::vector<TokenId>{258, 5, 65'535}));
  const std::byte bytes[] = {std::byte{5}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_EQ(content_key(std::vector<TokenId>{5}), xxh3_64(bytes));
}

}  // namespace
}  // namespace batchloom::sources
