// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_index.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/sources/sidecar_testing.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;
using objstore::says;

TEST(SidecarPath, LiesBesideTheShardOrInTheFolder) {
  EXPECT_EQ(sidecar_path("data/docs.jsonl", ""), "data/docs.jsonl.blidx");
  const std::string path = sidecar_path("/data/docs.jsonl", "/indexes");
  EXPECT_EQ(path, "/indexes/docs.jsonl.03d21eaa5ef87dac.blidx");
  EXPECT_NE(path, sidecar_path("/other/docs.jsonl", "/indexes"));
  EXPECT_EQ(path, sidecar_path("/data/x/.././docs.jsonl", "/indexes"));
  EXPECT_EQ(sidecar_path("docs.jsonl", "i"),
            sidecar_path((fs::current_path() / "docs.jsonl").string(), "i"));
}

TEST(CheckCurrent, SaysInWhatAnIndexIsOutdated) {
  const SidecarHeader header = test_header();
  const FileStamp stamp{.size_bytes = header.shard.size_bytes,
                        .modified_ns = header.shard.modified_ns,
                        .device = 1,
                        .inode = 2};
  EXPECT_TRUE(check_current(header, "docs-3.jsonl", stamp, header.rules).is_ok());
  FileStamp grown = stamp;
  grown.size_bytes = 200'000;
  const Status outdated = check_current(header, "docs-3.jsonl", grown, header.rules);
  EXPECT_TRUE(outdated.is(ErrorKind::kNotFound));
  EXPECT_EQ(outdated.message(),
            "the index of docs-3.jsonl is outdated: the file grew from 123,456 to 200,000 bytes "
            "since it was indexed");
  FileStamp touched = stamp;
  touched.modified_ns += 1;
  EXPECT_TRUE(says(check_current(header, "a", touched, header.rules), "the file was modified"));
  RecordRules rules = header.rules;
  rules.tokenizer_digest = 7;
  const Status tokenizer = check_current(header, "a", stamp, rules);
  EXPECT_TRUE(tokenizer.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(tokenizer, "another tokenizer (1111222233334444, now 0000000000000007)"));
  rules = header.rules;
  rules.fields_digest = 7;
  EXPECT_TRUE(says(check_current(header, "a", stamp, rules), "other fields"));
}

class SidecarIndexTest : public testing::Test {
 protected:
  void write_index(std::size_t count) {
    ASSERT_TRUE(write_sidecar(*files_, path_, test_header(), test_records(count)).is_ok());
  }

  void set_byte(std::size_t at, std::byte value) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(value));
  }

  bool is_mapped() const {
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), {});
    return text.find(path_) != std::string::npos;
  }

  objstore::ScratchFolder scratch_;
  const std::string path_ = fs::canonical(scratch_.path()).string() + "/docs.blidx";
  const std::unique_ptr<objstore::FileOps> files_ = objstore::make_posix_file_ops();
};

TEST_F(SidecarIndexTest, MapsTheFileWithTheFirstRecord) {
  write_index(11);
  auto index = SidecarIndex::open(path_).value();
  EXPECT_EQ(index->header(), test_header());
  EXPECT_EQ(index->totals().records, 11U);
  EXPECT_FALSE(is_mapped());
  const auto records = test_records(11);
  for (std::uint64_t i = 0; i < 11; ++i) {
    EXPECT_EQ(told(index->payload(i).value()), expected(test_header().contents, records[i]));
  }
  EXPECT_TRUE(is_mapped());
  index.reset();
  EXPECT_FALSE(is_mapped());
}

TEST_F(SidecarIndexTest, IsTheOffsetsOfItsShard) {
  write_index(11);
  const std::shared_ptr<const RecordOffsets> offsets = SidecarIndex::open(path_).value();
  EXPECT_EQ(offsets->count(), 11U);
  EXPECT_EQ(offsets->place(6), test_records(11)[6].place);
  EXPECT_EQ(offsets->place(11).offset_bytes, UINT64_MAX);
}

TEST_F(SidecarIndexTest, WhatIsNoIndexIsATypedErrorWithItsPath) {
  const auto missing = SidecarIndex::open(path_);
  EXPECT_TRUE(missing.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(missing.status(), path_ + ": there is no index"));
  EXPECT_TRUE(SidecarIndex::open(scratch_.path()).is(ErrorKind::kInvalid));
  EXPECT_TRUE(SidecarIndex::open(path_ + "/below").is(ErrorKind::kNotFound));
  for (const char* text : {"", "hello", "BLSI"}) {
    std::ofstream(path_) << text;
    EXPECT_TRUE(SidecarIndex::open(path_).is(ErrorKind::kCorruption)) << text;
  }
  EXPECT_TRUE(SidecarIndex::open(path_ + "/below").is(ErrorKind::kInvalid));
  std::ofstream(path_) << std::string(500, 'x');
  EXPECT_TRUE(says(SidecarIndex::open(path_).status(), path_ + ": offset 0: header: "));
  const std::string pipe = scratch_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(SidecarIndex::open(pipe).is(ErrorKind::kInvalid));
}

TEST_F(SidecarIndexTest, DamagedHeaderAndFooterAreFoundByOpeningAndBlocksByReading) {
  write_index(4);
  set_byte(9, std::byte{0xff});
  EXPECT_TRUE(says(SidecarIndex::open(path_).status(), path_ + ": offset 60: header: damaged"));
  write_index(4);
  const std::uint64_t size = fs::file_size(path_);
  set_byte(size - kSidecarFooterBytes, std::byte{0xff});
  EXPECT_TRUE(says(SidecarIndex::open(path_).status(), "footer: damaged"));
  write_index(4);
  set_byte(size - kSidecarFooterBytes - 1, std::byte{0xff});
  const auto index = SidecarIndex::open(path_).value();
  EXPECT_TRUE(index->record(1).is_ok());
  EXPECT_TRUE(index->record(2).is(ErrorKind::kCorruption));
  for (const Status& damaged : {index->record(2).status(), index->payload(2).status()}) {
    EXPECT_TRUE(says(damaged, "damaged"));
    EXPECT_TRUE(says(damaged, "remove " + path_ + ", and the next run makes it anew"));
  }
  EXPECT_EQ(index->place(2).offset_bytes, UINT64_MAX);
}

TEST_F(SidecarIndexTest, KeepsWhatItHasMappedWhenAnotherIndexTakesItsPlace) {
  write_index(11);
  const auto index = SidecarIndex::open(path_).value();
  ASSERT_TRUE(index->record(0).is_ok());
  write_index(3);
  EXPECT_TRUE(index->record(10).is_ok());
}

TEST_F(SidecarIndexTest, AnIndexThatWasReplacedBeforeItWasMappedIsANamedError) {
  write_index(11);
  const auto index = SidecarIndex::open(path_).value();
  const auto same = SidecarIndex::open(path_).value();
  write_index(11);
  EXPECT_TRUE(same->record(0).is_ok());
  write_index(3);
  const auto record = index->record(0);
  EXPECT_TRUE(record.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(record.status(), path_ + ": the index was replaced"));
}

TEST_F(SidecarIndexTest, ChecksTheEndsOfTheShard) {
  const auto shard = read_bytes("docs.jsonl", to_bytes("hello"));
  SidecarHeader header = test_header();
  header.shard.ends_checksum = ends_checksum(*shard, {}).value();
  ASSERT_TRUE(write_sidecar(*files_, path_, header, {}).is_ok());
  const auto index = SidecarIndex::open(path_).value();
  EXPECT_TRUE(index->check_ends(*shard, {}).is_ok());
  const Status other = index->check_ends(*read_bytes("docs.jsonl", to_bytes("hallo")), {});
  EXPECT_TRUE(other.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(other, "docs.jsonl has other content under the same size and time"));
}

TEST_F(SidecarIndexTest, ThreadsMayBeFirstTogether) {
  write_index(200);
  const auto records = test_records(200);
  const auto runtime = make_real_runtime();
  for (int turn = 0; turn < 20; ++turn) {
    const auto index = SidecarIndex::open(path_).value();
    std::atomic<int> right = 0;
    {
      std::vector<std::unique_ptr<Task>> tasks;
      for (int thread = 0; thread < 4; ++thread) {
        tasks.push_back(runtime->spawn("reader", [&](const std::stop_token&) {
          for (std::uint64_t i = 0; i < records.size(); ++i) {
            const auto payload = index->payload(i);
            if (payload.is_ok() && told(*payload) == expected(test_header().contents, records[i])) {
              ++right;
            }
          }
        }));
      }
    }
    ASSERT_EQ(right, 4 * 200);
  }
}

}  // namespace
}  // namespace batchloom::sources
