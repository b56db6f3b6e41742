// SPDX-License-Identifier: Apache-2.0
// What thousands of indexed files cost: at the start of a run, while nothing is read, and per
// record.
//
//  1. Shards of some bytes are written, each with an index; not timed.
//  2. A source is opened over all of them, several times; the median counts. The page cache is
//     warm: they were written just before.
//  3. Every record of the source is asked for its length, in an order without pattern: once with
//     all blocks yet to be checked, once more with all of them checked.
//  4. A shard is read through a pool with room for a hundredth of them.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/sources/record_source.h"
#include "batchloom/sources/sidecar_writer.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

struct Sizes {
  std::size_t shards = 5'000;
  std::uint64_t records_per_shard = 1'000;
  int openings = 5;
};
constexpr Sizes kQuick{.shards = 200, .records_per_shard = 100, .openings = 3};

constexpr std::size_t kShardBytes = 4'096;

void write_shards(sources::SourceFiles& files, const std::string& folder, const Sizes& sizes) {
  const auto ops = objstore::make_posix_file_ops();
  const std::string text(kShardBytes, 'x');
  for (std::size_t i = 0; i < sizes.shards; ++i) {
    const std::string path = fmt::format("{}/shard-{:05}.jsonl", folder, i);
    std::ofstream(path) << text;
    files.shards.push_back(path);
    const auto stamp = must(sources::stamp_of(path));
    const auto reader = must(sources::open_file(path));
    const sources::SidecarHeader header{.shard = must(sources::fingerprint_of(stamp, *reader, {})),
                                        .rules = files.rules,
                                        .contents = {},
                                        .block_records = sources::kBlockRecords};
    const auto writer = must(sources::SidecarWriter::create(
        *ops, sources::sidecar_path(path, files.index_folder), header));
    for (std::uint64_t record = 0; record < sizes.records_per_shard; ++record) {
      const auto tokens = static_cast<std::uint32_t>(1 + mix64(record) % 4'000);
      must(writer->append(sources::RecordSize{.place = {.offset_bytes = record, .size_bytes = 1},
                                              .tokens = tokens,
                                              .valid_labels = tokens - 1}));
    }
    must(writer->finish());
    if (i % 1'000 == 0) fmt::print(stderr, "shard {} of {}\n", i, sizes.shards);
  }
}

class Stopwatch {
 public:
  explicit Stopwatch(Runtime& runtime) : runtime_(runtime), begin_(runtime.now()) {}
  double seconds() const { return std::chrono::duration<double>(runtime_.now() - begin_).count(); }

 private:
  Runtime& runtime_;
  Time begin_;
};

/// Seconds per record.
double ask_all(Runtime& runtime, const sources::RecordSource& source) {
  const std::uint64_t records = source.records();
  const Stopwatch watch(runtime);
  std::uint64_t tokens = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    tokens += must(source.tokens(model::RecordIndex(mix64(i) % records)));
  }
  const double seconds = watch.seconds();
  BL_CHECK(tokens > 0, "no tokens");
  return seconds / static_cast<double>(records);
}

/// Seconds per read of a few bytes of any shard.
double read_shards(Runtime& runtime, const sources::RecordSource& source) {
  const std::size_t shards = source.shards().size();
  sources::FilePool pool(runtime, {.max_open = shards / 100});
  std::vector<std::unique_ptr<sources::ByteReader>> readers;
  for (const auto& shard : source.shards()) {
    readers.push_back(pool.reader(shard.path, shard.stamp));
  }
  Bytes bytes(100);
  const Stopwatch watch(runtime);
  for (std::size_t i = 0; i < 4 * shards; ++i) {
    must(readers[mix64(i) % shards]->read_at(0, bytes, {}));
  }
  return watch.seconds() / static_cast<double>(4 * shards);
}

int run(const std::string& folder, const Sizes& sizes) {
  const auto runtime = make_real_runtime();
  sources::SourceFiles files;
  files.name = "docs";
  write_shards(files, folder, sizes);
  std::vector<double> seconds;
  std::vector<std::string> rows;
  std::unique_ptr<sources::RecordSource> source;
  double bytes_per_shard = 0;
  for (int i = 0; i < sizes.openings; ++i) {
    source.reset();
    const std::size_t before = mallinfo2().uordblks;
    const Stopwatch watch(*runtime);
    source = must(sources::RecordSource::open(files));
    seconds.push_back(watch.seconds());
    bytes_per_shard =
        static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(sizes.shards);
    rows.push_back(fmt::format(R"({{"phase": "open", "shards": {}, "s": {:.4f}}})", sizes.shards,
                               seconds.back()));
  }
  const double first = ask_all(*runtime, *source);
  const double again = ask_all(*runtime, *source);
  const double read = read_shards(*runtime, *source);
  fmt::print(R"({{"figures": {{"open_s": {:.4f}, "bytes_per_shard": {:.0f}, )"
             R"("first_length_ns": {:.0f}, "length_ns": {:.0f}, "pooled_read_us": {:.2f}}}, )"
             R"("rows": [{}]}})"
             "\n",
             median(seconds), bytes_per_shard, first * 1e9, again * 1e9, read * 1e6,
             fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                      fmt::format("sidecars.{}", getpid());
  std::filesystem::create_directories(folder);
  const int status =
      batchloom::run(folder.string(), quick ? batchloom::kQuick : batchloom::Sizes{});
  std::filesystem::remove_all(folder);
  return status;
}
