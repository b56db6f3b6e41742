// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_source.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/sources/sidecar_testing.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;
using model::RecordIndex;
using objstore::says;

/// A source whose shards hold nothing that could be read; their indexes say enough.
class SourceInFolder {
 public:
  SourceInFolder() {
    files.name = "docs";
    files.rules = test_header().rules;
  }

  std::string path(std::size_t shard) const {
    return scratch_.path() + "/docs-" + std::to_string(shard) + ".jsonl";
  }

  void write_index(const std::string& shard, const std::vector<TestRecord>& records) const {
    SidecarHeader header = test_header();
    header.contents = contents;
    header.rules = files.rules;
    header.shard = fingerprint_of(*stamp_of(shard), **open_file(shard), {}).value();
    const std::string index = sidecar_path(shard, files.index_folder);
    EXPECT_TRUE(write_sidecar(*ops_, index, header, records).is_ok());
  }

  void add_shard(const std::vector<TestRecord>& records) {
    files.shards.push_back(path(files.shards.size()));
    std::ofstream(files.shards.back()) << "shard " << files.shards.size();
    write_index(files.shards.back(), records);
  }

  std::unique_ptr<RecordSource> open() const { return RecordSource::open(files).value(); }
  const std::string& folder() const { return scratch_.path(); }

  SourceFiles files;
  SidecarContents contents = test_header().contents;

 private:
  objstore::ScratchFolder scratch_;
  std::unique_ptr<objstore::FileOps> ops_ = objstore::make_posix_file_ops();
};

DrawnPart part_of(std::uint64_t record, std::uint64_t first_position, std::uint32_t tokens) {
  return {.id = {.source = model::SourceId(3),
                 .epoch = model::Epoch(1),
                 .index = RecordIndex(record),
                 .part = model::PartIndex(0)},
          .tokens = tokens,
          .first_position = first_position};
}

TEST(RecordSource, NumbersRecordsThroughAllShards) {
  SourceInFolder folder;
  const std::vector<std::size_t> sizes = {0, 3, 0, 0, 5, 1, 0};
  for (const std::size_t size : sizes) folder.add_shard(test_records(size));
  const auto source = folder.open();
  EXPECT_EQ(source->name(), "docs");
  EXPECT_EQ(source->records(), 9U);
  EXPECT_EQ(source->totals().bad_records, 1U);
  std::uint64_t number = 0;
  for (std::uint32_t shard = 0; shard < sizes.size(); ++shard) {
    const auto records = test_records(sizes[shard]);
    for (std::uint64_t i = 0; i < sizes[shard]; ++i, ++number) {
      const ShardRecord expected_place{.shard = model::ShardIndex(shard), .record = i};
      EXPECT_EQ(source->locate(RecordIndex(number)), expected_place) << number;
      EXPECT_EQ(source->record(RecordIndex(number))->size.place, records[i].place) << number;
      const std::size_t tokens = records[i].record ? records[i].record->ids.size() : 0;
      EXPECT_EQ(source->tokens(RecordIndex(number)).value(), tokens) << number;
    }
  }
}

TEST(RecordSource, DescribesAWholeRecord) {
  SourceInFolder folder;
  folder.add_shard({test_record(0, 5)});
  folder.add_shard({test_record(7, 4, "0110")});
  const model::SampleMeta meta = folder.open()->describe(part_of(1, 0, 4)).value();
  EXPECT_EQ(meta.id, part_of(1, 0, 4).id);
  EXPECT_EQ(meta.tokens, 4U);
  EXPECT_EQ(meta.valid_labels, 2U);
  EXPECT_EQ(meta.first_position, 0U);
  EXPECT_TRUE(meta.image_patches.empty());
  EXPECT_EQ(meta.place.shard, model::ShardIndex(1));
  EXPECT_EQ(meta.place.offset_bytes, 7'000U);
  EXPECT_EQ(meta.place.size_bytes, 907U);
}

TEST(RecordSource, RefusesPartsThatAreNotThere) {
  SourceInFolder folder;
  folder.add_shard({test_record(0, 5), test_record(1, 0)});
  const auto source = folder.open();
  for (const DrawnPart& part :
       {part_of(2, 0, 1), part_of(1, 0, 1), part_of(0, 0, 0), part_of(0, 0, 6), part_of(0, 5, 1),
        part_of(0, 3, 3), part_of(0, UINT64_MAX, 1), part_of(0, 1, UINT32_MAX)}) {
    const auto meta = source->describe(part);
    EXPECT_TRUE(meta.is(ErrorKind::kInvalid)) << part.first_position << " " << part.tokens;
    EXPECT_TRUE(says(meta.status(), "source 'docs': sample 3:1:"));
  }
}

TEST(RecordSource, WithoutLossIntervalsCutsOnlyRecordsOfWhichAllOrNoLabelsCount) {
  SourceInFolder folder;
  folder.contents.loss_intervals = false;
  folder.add_shard({test_record(0, 6), test_record(1, 6, "000000"), test_record(2, 6, "000111")});
  const auto source = folder.open();
  EXPECT_EQ(source->describe(part_of(0, 0, 4))->valid_labels, 4U);
  EXPECT_EQ(source->describe(part_of(0, 4, 2))->valid_labels, 1U);
  EXPECT_EQ(source->describe(part_of(1, 0, 4))->valid_labels, 0U);
  EXPECT_EQ(source->describe(part_of(2, 0, 6))->valid_labels, 3U);
  const auto cut = source->describe(part_of(2, 0, 4));
  EXPECT_TRUE(cut.is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(cut.status(), "index it again with loss intervals"));
}

RC_GTEST_PROP(RecordSourceProperty, PartsHaveTheLabelsOfTheirTokens, ()) {
  const auto tokens = *rc::gen::inRange<std::uint32_t>(1, 30);
  const auto max_sample_tokens = *rc::gen::inRange<std::uint32_t>(1, 12);
  std::string mask;
  for (std::uint32_t i = 0; i < tokens; ++i) mask += *rc::gen::arbitrary<bool>() ? '1' : '0';
  SourceInFolder folder;
  folder.add_shard({test_record(0, tokens, mask)});
  const auto source = folder.open();
  for (std::uint32_t begin = 0; begin < tokens; begin += max_sample_tokens) {
    const std::uint32_t end = std::min(tokens, begin + max_sample_tokens);
    std::uint32_t labels = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      labels += i + 1 < tokens && mask[i + 1] == '1' ? 1 : 0;
    }
    RC_ASSERT(source->describe(part_of(0, begin, end - begin))->valid_labels == labels);
  }
}

TEST(RecordSource, SaysHowManyShardsHaveNoIndexAndWhy) {
  SourceInFolder folder;
  for (int i = 0; i < 5; ++i) folder.add_shard(test_records(3));
  std::ofstream(folder.path(1), std::ios::app) << "more";
  fs::remove(sidecar_path(folder.path(2), ""));
  std::ofstream(sidecar_path(folder.path(3), "")) << "damaged";
  const auto source = RecordSource::open(folder.files);
  EXPECT_TRUE(source.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(source.status(), "source 'docs': 3 of 5 shards have no index"));
  EXPECT_TRUE(says(source.status(), folder.path(1) + " is outdated: the file grew"));

  for (const std::size_t shard : {1U, 2U, 3U}) {
    const IndexedShard found = open_indexed_shard(folder.files, folder.path(shard)).value();
    EXPECT_EQ(found.index, nullptr);
    EXPECT_EQ(found.no_index.is(ErrorKind::kCorruption), shard == 3);
    folder.write_index(folder.path(shard), test_records(4));
  }
  EXPECT_EQ(folder.open()->records(), 2U * 3 + 3U * 4);
}

TEST(RecordSource, OtherRulesMakeIndexesOutdated) {
  SourceInFolder folder;
  folder.add_shard(test_records(3));
  folder.files.rules.tokenizer_digest += 1;
  EXPECT_TRUE(says(RecordSource::open(folder.files).status(), "another tokenizer"));
}

TEST(RecordSource, AMissingShardIsNoMissingIndex) {
  SourceInFolder folder;
  folder.add_shard(test_records(3));
  fs::remove(folder.path(0));
  const auto source = RecordSource::open(folder.files);
  EXPECT_TRUE(source.is(ErrorKind::kNotFound));
  EXPECT_EQ(source.status().message(), folder.path(0) + ": there is no such file");
}

TEST(RecordSource, IndexesMayLieInAFolderOfTheirOwn) {
  SourceInFolder folder;
  folder.files.index_folder = folder.folder() + "/indexes";
  folder.add_shard(test_records(3));
  EXPECT_FALSE(fs::exists(sidecar_path(folder.path(0), "")));
  EXPECT_EQ(folder.open()->records(), 3U);
}

TEST(RecordSource, OpensShardsThroughThePoolAndChecksTheirEndsOnce) {
  SourceInFolder folder;
  folder.add_shard(test_records(3));
  folder.add_shard(test_records(3));
  const auto source = folder.open();
  const auto runtime = make_real_runtime();
  FilePool pool(*runtime, {.max_open = 1});
  const auto reader = source->open_shard(model::ShardIndex(1), pool, {}).value();
  std::string text(reader->size_bytes(), ' ');
  ASSERT_TRUE(reader->read_at(0, std::as_writable_bytes(std::span(text)), {}).is_ok());
  EXPECT_EQ(text, "shard 2");

  // Changed in place, with size and time as they were: only the ends tell.
  const auto time = fs::last_write_time(folder.path(0));
  std::fstream(folder.path(0), std::ios::in | std::ios::out) << "S";
  fs::last_write_time(folder.path(0), time);
  const auto changed = source->open_shard(model::ShardIndex(0), pool, {});
  EXPECT_TRUE(changed.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(changed.status(), folder.path(0) + " has other content"));
}

TEST(RecordSource, AShardThatChangesDuringTheRunIsANamedError) {
  SourceInFolder folder;
  folder.add_shard(test_records(3));
  const auto source = folder.open();
  const auto runtime = make_real_runtime();
  FilePool pool(*runtime, {});
  std::ofstream(folder.path(0), std::ios::app) << "more";
  const auto reader = source->open_shard(model::ShardIndex(0), pool, {});
  EXPECT_TRUE(reader.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(reader.status(), "grew from 7 to 11 bytes during this run"));
}

TEST(RecordSource, CostsAtMost10KiBWhileNothingIsRead) {
  SourceInFolder folder;
  for (int i = 0; i < 8; ++i) folder.add_shard(test_records(3));
  const auto runtime = make_real_runtime();
  FilePool pool(*runtime, {});
  constexpr std::size_t kSources = 100;
  std::vector<std::unique_ptr<RecordSource>> sources(kSources);
  std::vector<std::unique_ptr<ByteReader>> readers(kSources * 8);
  const std::size_t before = mallinfo2().uordblks;
  for (std::size_t i = 0; i < kSources; ++i) {
    sources[i] = folder.open();
    for (std::size_t shard = 0; shard < 8; ++shard) {
      const IndexedShard& indexed = sources[i]->shards()[shard];
      readers[8 * i + shard] = pool.reader(indexed.path, indexed.stamp);
    }
  }
  const std::size_t used = mallinfo2().uordblks - before;
  EXPECT_LE(used / kSources, std::size_t{10} << 10);
  EXPECT_EQ(pool.open_files(), 0U);
}

}  // namespace
}  // namespace batchloom::sources
