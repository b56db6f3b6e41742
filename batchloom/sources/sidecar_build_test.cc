// SPDX-License-Identifier: Apache-2.0
// From a JSON Lines file through its index back to its records.
#include "batchloom/sources/sidecar_build.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/sources/jsonl_reader.h"
#include "batchloom/sources/jsonl_scan.h"
#include "batchloom/sources/record_source.h"
#include "batchloom/sources/sidecar_testing.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {
namespace {

using objstore::says;

class SidecarBuildTest : public testing::Test {
 protected:
  SidecarBuildTest() {
    std::ofstream(files_.shards[0]) << "{\"ids\": [1, 2, 3], \"mask\": [0, 1, 1]}\n"
                                    << "{\"ids\": [1, 2], \"mask\": [1]}\n"
                                    << "\n"
                                    << "{\"ids\": [], \"mask\": []}\n"
                                    << "{\"ids\": [7, 8, 9, 10], \"mask\": [1, 0, 1, 0]}\n";
  }

  std::unique_ptr<ShardReader> open_with(std::unique_ptr<ByteReader> file,
                                         std::shared_ptr<const RecordOffsets> offsets) const {
    const JsonlSettings settings{.fields = TokenFields{.tokens = "ids", .loss_mask = "mask"},
                                 .loss_on = LossOn::kMask};
    return open_jsonl(std::move(file), std::move(offsets), settings, *tokenizer_).value();
  }

  std::unique_ptr<ShardReader> open_by_scan() const {
    auto file = open_file(files_.shards[0]).value();
    auto offsets = scan_jsonl_offsets(*stream_of(*file), 1'000, {}).value();
    return open_with(std::move(file), std::move(offsets));
  }

  SidecarBuild build_of(const SidecarContents& contents) const {
    SidecarBuild build;
    build.shard = files_.shards[0];
    build.stamp = stamp_of(build.shard).value();
    build.index_path = sidecar_path(build.shard, files_.index_folder);
    const auto file = open_file(build.shard).value();
    build.header.shard = fingerprint_of(build.stamp, *file, {}).value();
    build.header.rules = files_.rules;
    build.header.contents = contents;
    return build;
  }

  objstore::ScratchFolder scratch_;
  const std::unique_ptr<objstore::FileOps> ops_ = objstore::make_posix_file_ops();
  const std::unique_ptr<Tokenizer> tokenizer_ = make_ids_tokenizer({.vocab = 100}).value();
  const SourceFiles files_ = {.name = "docs",
                              .shards = {scratch_.path() + "/docs.jsonl"},
                              .rules = {.tokenizer_digest = 1, .fields_digest = 2}};
};

TEST_F(SidecarBuildTest, ReadersFindRecordsByTheIndex) {
  const auto scanned = open_by_scan();
  const auto totals =
      build_sidecar(*scanned, build_of({.id_width_bytes = 2, .loss_intervals = true}), *ops_, {});
  ASSERT_TRUE(totals.is_ok()) << totals.status().to_string();
  EXPECT_EQ(totals->records, 4U);
  EXPECT_EQ(totals->bad_records, 1U);
  EXPECT_EQ(totals->empty_records, 1U);
  EXPECT_EQ(totals->tokens, 7U);
  EXPECT_EQ(totals->valid_labels, 3U);

  const auto source = RecordSource::open(files_).value();
  const auto runtime = make_real_runtime();
  FilePool pool(*runtime, {});
  const auto reader = open_with(source->open_shard(model::ShardIndex(0), pool, {}).value(),
                                source->shards()[0].index);
  ASSERT_EQ(reader->records(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    Record by_index;
    Record by_scan;
    const auto bad = reader->read(i, {}, by_index).value();
    EXPECT_EQ(bad, scanned->read(i, {}, by_scan).value()) << i;
    EXPECT_EQ(by_index, by_scan) << i;
    const IndexedRecord indexed = source->record(model::RecordIndex(i)).value();
    EXPECT_EQ(indexed.is_bad, bad.has_value()) << i;
    EXPECT_EQ(indexed.size, bad ? RecordSize{.place = by_scan.place} : size_of(by_scan)) << i;
    const auto payload = source->shards()[0].index->payload(i).value();
    EXPECT_EQ(told(payload).ids, bad ? std::vector<TokenId>() : by_scan.ids) << i;
  }
}

TEST_F(SidecarBuildTest, SizesAloneAreTheSame) {
  const auto scanned = open_by_scan();
  const auto with_ids =
      build_sidecar(*scanned, build_of({.id_width_bytes = 4, .loss_intervals = false}), *ops_, {});
  EXPECT_EQ(build_sidecar(*scanned, build_of({}), *ops_, {}).value(), with_ids.value());
}

TEST_F(SidecarBuildTest, AShardThatChangesMeanwhileGetsNoIndex) {
  const auto scanned = open_by_scan();
  const SidecarBuild build = build_of({});
  std::ofstream(build.shard, std::ios::app) << "{}\n";
  const auto totals = build_sidecar(*scanned, build, *ops_, {});
  EXPECT_TRUE(totals.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(totals.status(), build.shard + " grew from"));
  EXPECT_FALSE(std::filesystem::exists(build.index_path));
}

}  // namespace
}  // namespace batchloom::sources
