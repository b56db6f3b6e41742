// SPDX-License-Identifier: Apache-2.0
// What does the store cost, beside the disk below it?
//
//  1. Ingest: batches of several sizes are built, uploaded by two threads and committed in order,
//     under each fsync policy. In turn with that, as many files of the same sizes are written bare
//     (bare_files.h), so that the disk's moods hit both alike. The median of the rounds counts.
//  2. Read: all ranks at once, each a process of its own, read the stream in order. Time per step,
//     and bytes fetched of batch objects over the bytes of the ranks' own runs.
//  3. Overhead: how much larger an object is than what it holds, for records of several sizes.
//
// Whoever writes or reads is a child process, and starts from a disk with nothing left to write.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "batchloom/base/freed_memory.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/client/consumer.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/simulator/synthetic.h"
#include "batchloom/store/ordered_appender.h"
#include "batchloom/store/segment_reader.h"
#include "bench/bare_files.h"
#include "bench/data_gets.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

using objstore::FsyncPolicy;
using simulator::SyntheticBatches;
using simulator::SyntheticConfig;

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kRanks = 8;
constexpr std::uint32_t kUploaders = 2;
constexpr std::uint32_t kTokenBytes = 2;
constexpr std::uint32_t kRecordTokens = 2048;

struct Sizes {
  std::vector<std::uint64_t> batch_bytes = {64 * kKiB, 256 * kKiB, kMiB,     4 * kMiB,
                                            8 * kMiB,  16 * kMiB,  64 * kMiB};
  std::uint64_t rounds = 11;
  std::uint64_t round_bytes = 512 * kMiB;  ///< What a round writes, about.
  std::uint64_t round_batches = 512;       ///< And at most so many.
  std::uint64_t read_steps = 128;          ///< Of each rank, at least.
};

Sizes quick_sizes() {
  return {.batch_bytes = {256 * kKiB, 8 * kMiB},
          .rounds = 3,
          .round_bytes = 32 * kMiB,
          .round_batches = 32,
          .read_steps = 8};
}

std::string_view to_text(FsyncPolicy policy) {
  return policy == FsyncPolicy::kNone ? "none" : "always";
}

SyntheticConfig config_of(std::uint64_t run_bytes, std::uint32_t record_tokens) {
  SyntheticConfig config;
  config.ranks = kRanks;
  config.record_tokens = record_tokens;
  config.records_per_run = static_cast<std::uint32_t>(run_bytes / (record_tokens * kTokenBytes));
  return config;
}

/// The batches of one size.
struct Shape {
  std::uint64_t batch_bytes = 0;   ///< Of payload, about.
  std::uint64_t object_bytes = 0;  ///< As stored.
  std::uint64_t count = 0;
  SyntheticConfig config;
};

/// Of nobody in particular.
store::BatchIdentity some_identity() {
  return {.stream = {}, .producer = "main", .term = store::Term(1), .seq = {}};
}

store::BuiltBatch build(const SyntheticBatches& batches, const SyntheticBatches::Object& object,
                        const store::BatchIdentity& identity) {
  return must(store::build_batch({.identity = identity,
                                  .token_width = batches.config().token_width,
                                  .origin = batches.origin()},
                                 object.steps()));
}

Shape shape_of(std::uint64_t batch_bytes, const Sizes& sizes) {
  Shape shape;
  shape.batch_bytes = batch_bytes;
  shape.count = std::clamp<std::uint64_t>(sizes.round_bytes / batch_bytes, 2, sizes.round_batches);
  shape.config = config_of(batch_bytes / kRanks, kRecordTokens);
  const auto batches = must(SyntheticBatches::create(shape.config));
  const SyntheticBatches::Object object = batches->object(store::Seq(0));
  shape.object_bytes = build(*batches, object, some_identity()).size_bytes;
  return shape;
}

/// The stream in one folder, as one process sees it.
class Folder {
 public:
  Folder(Runtime& runtime, const std::string& path, FsyncPolicy policy)
      : runtime_(runtime),
        local_(
            must(objstore::LocalStore::create({.root = path, .fsync = policy}, *files_, runtime))) {
    std::vector<std::string> folders = {"m", "s", "gc"};
    for (unsigned byte = 0; byte < 256; ++byte) folders.push_back(fmt::format("d/{:02x}", byte));
    must(local_->prepare_folders(folders, {}));
    must(store::init_stream(deps(), "bench", {}).status());
    stream_ = must(store::Stream::open(deps(), {}, {}));
  }

  const store::Stream& stream() const { return *stream_; }
  /// Fetched of batch objects so far.
  std::uint64_t data_bytes() const { return gets_->bytes(); }

 private:
  store::StreamDeps deps() { return {runtime_, *gets_, counters_}; }

  Runtime& runtime_;
  Counters counters_;
  std::unique_ptr<objstore::FileOps> files_ = objstore::make_posix_file_ops();
  std::unique_ptr<objstore::LocalStore> local_;
  std::unique_ptr<DataGets> gets_ = std::make_unique<DataGets>(*local_);
  std::unique_ptr<store::Stream> stream_;
};

/// Builds, uploads and commits; returns the seconds that this takes.
class Ingest {
 public:
  Ingest(Runtime& runtime, const store::Stream& stream, const Shape& shape)
      : runtime_(runtime),
        stream_(stream),
        batches_(must(SyntheticBatches::create(shape.config))),
        session_(must(store::ProducerSession::open(stream, "main", {}))),
        appender_(runtime, *session_) {
    // Plans and samples come from elsewhere.
    for (std::uint64_t i = 0; i < shape.count; ++i) {
      objects_.push_back(batches_->object(store::Seq(i)));
    }
  }

  double run() {
    const Time begin = runtime_.now();
    std::vector<std::unique_ptr<Task>> uploaders;
    for (std::uint32_t i = 0; i < kUploaders; ++i) {
      uploaders.push_back(runtime_.spawn("uploader", [this](const std::stop_token&) {
        for (auto seq = next_++; seq < objects_.size(); seq = next_++) upload(store::Seq(seq));
      }));
    }
    must(appender_.flush(store::Seq(objects_.size()), {}));
    return std::chrono::duration<double>(runtime_.now() - begin).count();
  }

 private:
  void upload(store::Seq seq) {
    const store::BatchIdentity identity{stream_.uuid(), session_->producer(), session_->term(),
                                        seq};
    const store::BuiltBatch built = build(*batches_, objects_[seq.value], identity);
    const store::BatchInfo info{
        .seq = seq, .steps = built.steps, .ranks = built.ranks, .run_table = built.run_table};
    must(appender_.submit(must(session_->upload(info, built.parts, {})), {}));
  }

  Runtime& runtime_;
  const store::Stream& stream_;
  const std::unique_ptr<SyntheticBatches> batches_;
  std::vector<SyntheticBatches::Object> objects_;
  std::atomic<std::uint64_t> next_ = 0;
  const std::unique_ptr<store::ProducerSession> session_;
  store::OrderedAppender appender_;
};

/// A folder of its own for each child that writes, on the disk that holds the checkout.
class Scratch {
 public:
  explicit Scratch(std::string root) : root_(std::move(root)) {
    std::filesystem::create_directories(root_);
  }
  ~Scratch() { std::filesystem::remove_all(root_); }

  std::string fresh() {
    std::string folder = fmt::format("{}/{}", root_, count_++);
    std::filesystem::create_directories(folder);
    sync();
    return folder;
  }

 private:
  std::string root_;
  std::uint64_t count_ = 0;
};

double ingest(const std::string& folder, FsyncPolicy policy, const Shape& shape) {
  return Child([&] {
           const auto runtime = make_real_runtime();
           const Folder stream(*runtime, folder, policy);
           return std::vector<double>{Ingest(*runtime, stream.stream(), shape).run()};
         })
      .join()
      .at(0);
}

double write_bare(const std::string& folder, FsyncPolicy policy, const Shape& shape) {
  return Child([&] {
           const auto runtime = make_real_runtime();
           return std::vector<double>{write_bare_files(*runtime, {.folder = folder,
                                                                  .size_bytes = shape.object_bytes,
                                                                  .count = shape.count,
                                                                  .writers = kUploaders,
                                                                  .fsync = policy})};
         })
      .join()
      .at(0);
}

struct Share {
  double of_raw = 0;   ///< Of the bare files' MB/s.
  std::string row;     ///< For people.
  std::string folder;  ///< A stream that was left in place.
};

Share compare_ingest(Scratch& scratch, FsyncPolicy policy, const Shape& shape, const Sizes& sizes) {
  Share share;
  std::vector<double> store_s, bare_s, shares;
  for (std::uint64_t round = 0; round < sizes.rounds; ++round) {
    // Who comes second finds the disk as the first left it: they take turns at that.
    for (const bool is_store : {round % 2 == 0, round % 2 != 0}) {
      if (is_store) {
        if (!share.folder.empty()) std::filesystem::remove_all(share.folder);
        share.folder = scratch.fresh();
        store_s.push_back(ingest(share.folder, policy, shape));
      } else {
        const std::string bare = scratch.fresh();
        bare_s.push_back(write_bare(bare, policy, shape));
        std::filesystem::remove_all(bare);
      }
    }
    shares.push_back(bare_s.back() / store_s.back());
  }
  share.of_raw = median(shares);
  const double mb = static_cast<double>(shape.count * shape.object_bytes) / 1e6;
  share.row = fmt::format(
      R"({{"phase": "ingest", "batch_bytes": {}, "fsync": "{}", "batches": {}, )"
      R"("mb_per_s": {:.1f}, "batches_per_s": {:.1f}, "raw_mb_per_s": {:.1f}, )"
      R"("share_of_raw": {:.3f}}})",
      shape.batch_bytes, to_text(policy), shape.count, mb / median(store_s),
      static_cast<double>(shape.count) / median(store_s), mb / median(bare_s), share.of_raw);
  return share;
}

/// What one rank's process says of its reading, and the time that each step took.
struct RankRead {
  double seconds = 0;
  double payload_bytes = 0;
  double fetched_bytes = 0;
  double run_bytes = 0;
  std::vector<double> step_us = {};

  std::vector<double> numbers() const {
    std::vector<double> numbers = {seconds, payload_bytes, fetched_bytes, run_bytes};
    numbers.insert(numbers.end(), step_us.begin(), step_us.end());
    return numbers;
  }
  static RankRead from(const std::vector<double>& numbers) {
    return {.seconds = numbers.at(0),
            .payload_bytes = numbers.at(1),
            .fetched_bytes = numbers.at(2),
            .run_bytes = numbers.at(3),
            .step_us = {numbers.begin() + 4, numbers.end()}};
  }
};

/// What the manifest says: the rank's runs of `steps` steps.
double run_bytes_of(const store::Stream& stream, const store::Head& head, model::HdpRank rank,
                    std::uint64_t steps) {
  store::SegmentReader segments(stream);
  double bytes = 0;
  for (store::Step step; step.value < steps;) {
    const store::Entry entry = must(segments.find(head, step, {}));
    const std::string key = store::data_key(entry.object());
    const store::BatchContext object{
        .key = key,
        .identity = {stream.uuid(), entry.producer, entry.term, entry.seq},
        .steps = entry.steps,
        .ranks = entry.ranks,
        .size_bytes = entry.size_bytes};
    const std::size_t size = store::rank_rows_bytes(entry.steps);
    const auto rows = must(store::decode_rank_rows(
        object, rank, ByteSpan(entry.run_table).subspan(rank.value * size, size)));
    for (const store::RunRow& row : rows) bytes += row.size_bytes;
    step = entry.end_step();
  }
  return bytes;
}

/// Reads all of a stream, over and over, until it has read enough steps.
RankRead read_as(model::HdpRank rank, const Folder& folder, std::uint64_t steps) {
  const store::Stream& stream = folder.stream();
  Runtime& runtime = stream.runtime();
  RankRead result;
  client::HeadFeed feed(stream);
  const store::HeadPtr head = must(feed.refresh({}));
  const double run_bytes = run_bytes_of(stream, head->head, rank, head->head.next_step.value);
  while (result.step_us.size() < steps) {
    client::ConsumerOptions options;
    options.rank = rank;
    const Time begin = runtime.now();
    const auto consumer = must(client::Consumer::open(feed, options, {}));
    for (std::uint64_t i = 0; i < head->head.next_step.value; ++i) {
      const Time asked = runtime.now();
      const auto batch = must(consumer->next({}));
      const Duration waited = runtime.now() - asked;
      result.step_us.push_back(std::chrono::duration<double, std::micro>(waited).count());
      result.payload_bytes += static_cast<double>(batch->payload_bytes());
    }
    result.run_bytes += run_bytes;
    result.seconds += std::chrono::duration<double>(runtime.now() - begin).count();
  }
  result.fetched_bytes = static_cast<double>(folder.data_bytes());
  return result;
}

struct ReadResult {
  double amplification = 0;
  std::string row;
};

ReadResult measure_read(const std::string& folder, const Shape& shape, const Sizes& sizes) {
  std::vector<std::unique_ptr<Child>> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::make_unique<Child>([&, rank] {
      const auto runtime = make_real_runtime();
      const Folder stream(*runtime, folder, FsyncPolicy::kNone);
      return read_as(model::HdpRank(rank), stream, sizes.read_steps).numbers();
    }));
  }
  RankRead all;
  double mb_per_s = 0;
  for (const auto& child : ranks) {
    const RankRead rank = RankRead::from(child->join());
    mb_per_s += rank.payload_bytes / rank.seconds / 1e6;
    all.fetched_bytes += rank.fetched_bytes;
    all.run_bytes += rank.run_bytes;
    all.step_us.insert(all.step_us.end(), rank.step_us.begin(), rank.step_us.end());
  }
  const double amplification = all.fetched_bytes / all.run_bytes;
  return {.amplification = amplification,
          .row = fmt::format(R"({{"phase": "read", "batch_bytes": {}, "ranks": {}, "steps": {}, )"
                             R"("mb_per_s": {:.1f}, "p50_us": {:.1f}, "p99_us": {:.1f}, )"
                             R"("read_amplification": {:.4f}}})",
                             shape.batch_bytes, kRanks, all.step_us.size(), mb_per_s,
                             median(all.step_us), quantile(all.step_us, 0.99), amplification)};
}

/// How much of an object is not payload, in runs of 1 MiB.
double overhead_of(std::uint64_t record_bytes) {
  const auto batches = must(SyntheticBatches::create(
      config_of(kMiB, static_cast<std::uint32_t>(record_bytes / kTokenBytes))));
  const SyntheticBatches::Object object = batches->object(store::Seq(0));
  const store::BuiltBatch built = build(*batches, object, some_identity());
  return static_cast<double>(built.size_bytes - built.payload_bytes) /
         static_cast<double>(built.payload_bytes);
}

struct Figures {
  double ingest_share = 0;
  double amplification = 0;
};

Figures measure_streams(Scratch& scratch, const Sizes& sizes, std::vector<std::string>& rows) {
  Figures figures;
  for (const std::uint64_t batch_bytes : sizes.batch_bytes) {
    const Shape shape = shape_of(batch_bytes, sizes);
    std::vector<double> shares;
    for (const FsyncPolicy policy : {FsyncPolicy::kAlways, FsyncPolicy::kNone}) {
      fmt::print(stderr, "batches of {} KiB, fsync {}\n", batch_bytes / kKiB, to_text(policy));
      const Share share = compare_ingest(scratch, policy, shape, sizes);
      rows.push_back(share.row);
      shares.push_back(share.of_raw);
      if (policy == FsyncPolicy::kNone) {
        const ReadResult read = measure_read(share.folder, shape, sizes);
        rows.push_back(read.row);
        if (batch_bytes / kRanks >= kMiB) {
          figures.amplification = std::max(figures.amplification, read.amplification);
        }
      }
      std::filesystem::remove_all(share.folder);
    }
    if (batch_bytes == 8 * kMiB) figures.ingest_share = std::ranges::min(shares);
  }
  return figures;
}

int run(const std::string& folder, const Sizes& sizes) {
  Scratch scratch(folder);
  std::vector<std::string> rows;
  const Figures figures = measure_streams(scratch, sizes, rows);
  std::vector<double> overheads;
  for (const std::uint64_t record_bytes : {256 * std::uint64_t{1}, 4 * kKiB, 64 * kKiB}) {
    overheads.push_back(overhead_of(record_bytes));
    rows.push_back(fmt::format(R"({{"phase": "overhead", "record_bytes": {}, "overhead": {:.5f}}})",
                               record_bytes, overheads.back()));
  }
  fmt::print(R"({{"figures": {{"ingest_share_of_raw_8mib": {:.3f}, "read_amplification": {:.4f}, )"
             R"("run_overhead_256b": {:.5f}, "run_overhead_4kib": {:.5f}, )"
             R"("run_overhead_64kib": {:.5f}}}, "rows": [{}]}})"
             "\n",
             figures.ingest_share, figures.amplification, overheads[0], overheads[1], overheads[2],
             fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  batchloom::keep_freed_memory();  // As the command does.
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  // Beside the program: on the disk that holds the checkout, not in a temporary file system of
  // memory.
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                      fmt::format("store.{}", getpid());
  return batchloom::run(folder.string(), quick ? batchloom::quick_sizes() : batchloom::Sizes{});
}
