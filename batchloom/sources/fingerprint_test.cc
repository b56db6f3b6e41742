// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/fingerprint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/local_store_testing.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;
using objstore::says;

Bytes numbered_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(mix64(i));
  return bytes;
}

std::uint64_t ends_of(Bytes bytes) {
  return ends_checksum(*read_bytes("shard", std::move(bytes)), {}).value();
}

TEST(EndsChecksum, IsThatOfTheWholeFileUpTo128KiB) {
  for (const std::size_t size : {0U, 1U, 65'535U, 65'536U, 65'537U, 131'071U, 131'072U}) {
    const Bytes bytes = numbered_bytes(size);
    EXPECT_EQ(ends_of(bytes), xxh3_64(bytes)) << size;
  }
}

TEST(EndsChecksum, LeavesOutTheMiddleOfALargeFile) {
  const Bytes bytes = numbered_bytes(131'074);
  Bytes ends(bytes.begin(), bytes.begin() + 65'536);
  ends.insert(ends.end(), bytes.end() - 65'536, bytes.end());
  EXPECT_EQ(ends_of(bytes), xxh3_64(ends));
}

TEST(EndsChecksum, SeesEveryByteOfBothEnds) {
  Bytes bytes = numbered_bytes(140'000);
  const std::uint64_t whole = ends_of(bytes);
  for (const std::size_t at : {0U, 65'535U, 74'464U, 139'999U}) {
    bytes[at] ^= std::byte{1};
    EXPECT_NE(ends_of(bytes), whole) << at;
    bytes[at] ^= std::byte{1};
  }
  for (const std::size_t at : {65'536U, 74'463U}) {
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(ends_of(bytes), whole) << at;
    bytes[at] ^= std::byte{1};
  }
}

class FileStampTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = scratch_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  static void set_time(const std::string& path, std::int64_t seconds, std::int64_t ns) {
    const timespec times[2] = {{seconds, ns}, {seconds, ns}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  objstore::ScratchFolder scratch_;
};

TEST_F(FileStampTest, HasSizeAndTimeInNanoseconds) {
  const std::string path = write("a", "hello");
  set_time(path, 1'700'000'000, 123'456'789);
  const FileStamp stamp = stamp_of(path).value();
  EXPECT_EQ(stamp.size_bytes, 5U);
  EXPECT_EQ(stamp.modified_ns, 1'700'000'000'123'456'789);
}

TEST_F(FileStampTest, ATimeBefore1970IsNegative) {
  const std::string path = write("a", "hello");
  set_time(path, -1, 999'999'999);
  EXPECT_EQ(stamp_of(path)->modified_ns, -1);
}

TEST_F(FileStampTest, FollowsLinks) {
  const std::string path = write("a", "hello");
  fs::create_symlink(path, scratch_.path() + "/link");
  EXPECT_EQ(stamp_of(scratch_.path() + "/link").value(), stamp_of(path).value());
}

TEST_F(FileStampTest, RefusesWhatIsNoPlainFileByName) {
  const std::string missing = scratch_.path() + "/missing";
  EXPECT_TRUE(stamp_of(missing).is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(stamp_of(missing).status(), missing));
  EXPECT_TRUE(stamp_of(scratch_.path()).is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(stamp_of(scratch_.path()).status(), "a folder, not a plain file"));
  const std::string pipe = scratch_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(stamp_of(pipe).is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(stamp_of(pipe).status(), pipe + ": a pipe"));
  const std::string below_a_file = write("a", "") + "/b";
  EXPECT_TRUE(stamp_of(below_a_file).is(ErrorKind::kInvalid));
}

TEST(Difference, IsNamed) {
  const ShardFingerprint before{
      .size_bytes = 1'024, .modified_ns = 5'000'000'000, .ends_checksum = 0xab};
  EXPECT_EQ(difference(before, before), std::nullopt);
  ShardFingerprint now = before;
  now.size_bytes = 2'048;
  EXPECT_EQ(difference(before, now), "grew from 1,024 to 2,048 bytes");
  EXPECT_EQ(difference(now, before), "shrank from 2,048 to 1,024 bytes");
  now = before;
  now.modified_ns = 1'239'000'000'001;
  EXPECT_EQ(difference(before, now), "was modified: its time is 1,234.000000001 s later");
  EXPECT_EQ(difference(now, before), "was modified: its time is 1,234.000000001 s earlier");
  now = before;
  now.ends_checksum = 0xcd;
  EXPECT_EQ(difference(before, now),
            "has other content under the same size and time: the checksum of its ends was "
            "00000000000000ab and is 00000000000000cd");
}

TEST(Difference, OfTimesAtTheEndsOfTheirRangeDoesNotOverflow) {
  const ShardFingerprint before{.size_bytes = 1, .modified_ns = INT64_MIN, .ends_checksum = 0};
  const FileStamp now{.size_bytes = 1, .modified_ns = INT64_MAX, .device = 0, .inode = 0};
  EXPECT_EQ(difference(before, now), "was modified: its time is 18,446,744,073.709551615 s later");
}

TEST(CheckUnchanged, NamesFileAndDifference) {
  const FileStamp before{.size_bytes = 10, .modified_ns = 20, .device = 1, .inode = 2};
  EXPECT_TRUE(check_unchanged("docs-3.jsonl", before, before).is_ok());
  FileStamp now = before;
  now.size_bytes = 11;
  const Status grown = check_unchanged("docs-3.jsonl", before, now);
  EXPECT_TRUE(grown.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(grown, "docs-3.jsonl grew from 10 to 11 bytes during this run"));
  now = before;
  now.inode = 3;
  EXPECT_TRUE(says(check_unchanged("docs-3.jsonl", before, now), "replaced by another file"));
  now = before;
  now.device = 3;
  EXPECT_TRUE(check_unchanged("docs-3.jsonl", before, now).is(ErrorKind::kConflict));
}

RC_GTEST_PROP(Difference, SaysNothingExactlyOfEqualFingerprints, ()) {
  const auto small = [] { return *rc::gen::inRange<std::uint64_t>(0, 2); };
  const ShardFingerprint a{small(), static_cast<std::int64_t>(small()), small()};
  const ShardFingerprint b{small(), static_cast<std::int64_t>(small()), small()};
  RC_ASSERT(difference(a, b).has_value() == (a != b));
}

}  // namespace
}  // namespace batchloom::sources
