// SPDX-License-Identifier: Apache-2.0
// Does a commit cost more after a million of them? And how large do heads get?
//
//  1. Two streams, one with a short and one with a long history, are grown in memory, one commit
//     per batch entry, while slots are reclaimed. Then their objects are copied into local folders.
//     (A million files made and removed within minutes would measure the file system: ext4 without
//     a journal passes over inodes that were freed in the last 60 to 360 s, thousands of them for
//     each new file. A stream that commits once a second never gets there.)
//  2. Under each fsync policy, commits to the two alternate, so that the disk's moods hit both
//     alike. A few rounds; each round gives a ratio of medians and of means, and the median of
//     the rounds counts.
//  3. In memory: 64 producers with long names and states of 4 KiB, for 1,024 ranks and packs of
//     4. The largest head.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "batchloom/base/check.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/metered_store.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/reclaimer.h"

namespace batchloom {
namespace {

using objstore::FsyncPolicy;

struct Sizes {
  std::uint64_t short_history = 1'000;
  std::uint64_t long_history = 1'000'000;
  std::uint64_t rounds = 5;
  std::uint64_t commits_per_round = 200;  // To each of the two.
  std::uint64_t crowd_commits = 20'000;
};
constexpr Sizes kQuick{.short_history = 100,
                       .long_history = 10'000,
                       .rounds = 3,
                       .commits_per_round = 50,
                       .crowd_commits = 2'000};

constexpr std::uint64_t kReclaimEvery = 512;
constexpr std::size_t kStateBytes = 200;  // Stands in the head.

template <class T>
T must(Result<T> result) {
  BL_CHECK(result.is_ok(), result.status().to_string());
  return std::move(result).value();
}

void must(const Status& status) {
  BL_CHECK(status.is_ok(), status.to_string());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A stream that commits, and how long and how much.
class Stream {
 public:
  Stream(Runtime& runtime, objstore::ObjectStore& objects)
      : runtime_(runtime), metered_(objects, counters_) {
    const store::StreamDeps deps{runtime_, metered_, counters_};
    must(store::init_stream(deps, "bench", {}).status());
    stream_ = must(store::Stream::open(deps, {}, {}));
    reclaimer_ = std::make_unique<store::Reclaimer>(*stream_);
  }

  std::unique_ptr<store::ProducerSession> session(const std::string& producer) {
    return must(store::ProducerSession::open(*stream_, producer, {}));
  }

  // Publishes one batch object; it need not exist. Returns the microseconds it took.
  double commit(store::ProducerSession& session, store::Seq seq, store::PendingBatch batch) {
    batch.seq = seq;
    batch.nonce = store::Nonce(runtime_.random());
    const std::uint64_t put_before = put_bytes();
    const Time begin = runtime_.now();
    must(session.commit(std::span(&batch, 1), {}).status());
    const double micros = std::chrono::duration<double, std::micro>(runtime_.now() - begin).count();
    commit_max_bytes_ = std::max(commit_max_bytes_, put_bytes() - put_before);
    return micros;
  }

  void reclaim_slots() {
    store::ReclaimReport report;
    must(reclaimer_->reclaim_slots(report, {}));
  }

  void reclaim() { must(reclaimer_->run({}).status()); }

  std::uint64_t newest_head_bytes() {
    store::ManifestReader reader(*stream_);
    const auto head = must(reader.latest({}));
    return must(metered_.head(store::manifest_key(head->head.slot), {}))->size_bytes;
  }

  std::uint64_t commit_max_bytes() const { return commit_max_bytes_; }

 private:
  std::uint64_t put_bytes() { return counters_.counter("objstore_put_bytes").value(); }

  Runtime& runtime_;
  Counters counters_;
  objstore::MeteredStore metered_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<store::Reclaimer> reclaimer_;
  std::uint64_t commit_max_bytes_ = 0;
};

store::PendingBatch plain_batch() {
  store::PendingBatch batch;
  batch.size_bytes = 8 << 20;
  batch.ranks = 8;
  batch.run_table.resize(store::run_table_max_bytes(batch.ranks, batch.steps));
  batch.state_after.resize(kStateBytes);
  return batch;
}

// A stream with one producer, which commits in memory and then in a folder.
class History {
 public:
  History(Runtime& runtime, std::string folder)
      : runtime_(runtime), folder_(std::move(folder)), memory_(runtime) {
    open(memory_);
  }

  double commit() {
    const double micros = stream_->commit(*session_, seq_, plain_batch());
    ++seq_;
    commit_max_bytes_ = std::max(commit_max_bytes_, stream_->commit_max_bytes());
    return micros;
  }

  // Until so many have been committed. Returns commits per second, reclaiming included.
  double grow_to(std::uint64_t commits) {
    const Time begin = runtime_.now();
    const std::uint64_t before = seq_.value;
    while (seq_.value < commits) {
      commit();
      if (seq_.value % kReclaimEvery == 0) stream_->reclaim_slots();
      if (seq_.value % 100'000 == 0) fmt::print(stderr, "{} commits\n", seq_.value);
    }
    stream_->reclaim();
    const double seconds = std::chrono::duration<double>(runtime_.now() - begin).count();
    return static_cast<double>(commits - before) / seconds;
  }

  // Goes on in the folder, which is filled where it is new.
  void move_to_folder(FsyncPolicy policy) {
    session_ = nullptr;
    stream_ = nullptr;
    if (!local_) copy(memory_, *open_folder(FsyncPolicy::kNone));
    local_ = open_folder(policy);
    open(*local_);
  }

  std::uint64_t commit_max_bytes() const { return commit_max_bytes_; }

 private:
  std::unique_ptr<objstore::LocalStore> open_folder(FsyncPolicy policy) {
    return must(
        objstore::LocalStore::create({.root = folder_, .fsync = policy}, *files_, runtime_));
  }

  static void copy(objstore::ObjectStore& from, objstore::ObjectStore& to) {
    const auto listing = must(from.list("", "", {}));
    for (;;) {
      const auto page = must(listing->next_page({}));
      if (page.empty()) return;
      for (const objstore::ListedObject& object : page) {
        const auto data = must(from.get(object.key, {}, {}));
        must(put_bytes(to, object.key, data->bytes, objstore::PutCondition::none(), {}).status());
      }
    }
  }

  void open(objstore::ObjectStore& objects) {
    stream_ = std::make_unique<Stream>(runtime_, objects);
    session_ = stream_->session("main");
    seq_ = session_->next_seq();
  }

  Runtime& runtime_;
  std::unique_ptr<objstore::FileOps> files_ = objstore::make_posix_file_ops();
  std::string folder_;
  objstore::MemoryStore memory_;
  std::unique_ptr<objstore::LocalStore> local_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<store::ProducerSession> session_;
  store::Seq seq_;
  std::uint64_t commit_max_bytes_ = 0;
};

struct Ratios {
  double p50 = 0;
  double mean = 0;
  double short_p50_us = 0;
  double long_p50_us = 0;
};

Ratios compare(History& brief, History& lengthy, const Sizes& sizes) {
  std::vector<double> p50_ratios, mean_ratios, brief_p50, lengthy_p50;
  for (std::uint64_t round = 0; round < sizes.rounds; ++round) {
    std::vector<double> brief_us, lengthy_us;
    for (std::uint64_t i = 0; i < sizes.commits_per_round; ++i) {
      brief_us.push_back(brief.commit());
      lengthy_us.push_back(lengthy.commit());
    }
    p50_ratios.push_back(median(lengthy_us) / median(brief_us));
    mean_ratios.push_back(mean(lengthy_us) / mean(brief_us));
    brief_p50.push_back(median(brief_us));
    lengthy_p50.push_back(median(lengthy_us));
  }
  return {median(p50_ratios), median(mean_ratios), median(brief_p50), median(lengthy_p50)};
}

struct Crowd {
  std::uint64_t head_max_bytes = 0;
  std::uint64_t commit_max_bytes = 0;
};

Crowd measure_crowd(Runtime& runtime, const Sizes& sizes) {
  constexpr std::uint64_t kProducers = 64;
  objstore::MemoryStore objects(runtime);
  Stream stream(runtime, objects);
  std::vector<std::unique_ptr<store::ProducerSession>> sessions;
  for (std::uint64_t i = 0; i < kProducers; ++i) {
    sessions.push_back(stream.session(fmt::format("{:0>63}", i)));
  }
  store::PendingBatch batch;
  batch.size_bytes = std::uint64_t{256} << 20;
  batch.ranks = 1024;
  batch.steps = 4;
  batch.state_after.resize(4096);
  Crowd crowd;
  for (std::uint64_t i = 0; i < sizes.crowd_commits; ++i) {
    stream.commit(*sessions[i % kProducers], store::Seq(i / kProducers), batch);
    crowd.head_max_bytes = std::max(crowd.head_max_bytes, stream.newest_head_bytes());
    if (i % (4 * kReclaimEvery) == 0) stream.reclaim();
  }
  crowd.commit_max_bytes = stream.commit_max_bytes();
  return crowd;
}

int run(const std::string& folder, const Sizes& sizes) {
  const auto runtime = make_real_runtime();
  History brief(*runtime, folder + "/brief");
  History lengthy(*runtime, folder + "/lengthy");
  brief.grow_to(sizes.short_history);
  std::vector<std::string> rows;
  for (std::uint64_t history = sizes.short_history; history <= sizes.long_history; history *= 10) {
    const double rate = lengthy.grow_to(history);
    rows.push_back(fmt::format(
        R"({{"phase": "grow in memory", "history": {}, "commits_per_s": {:.0f}}})", history, rate));
  }
  Ratios worst;
  for (const FsyncPolicy policy : {FsyncPolicy::kNone, FsyncPolicy::kAlways}) {
    const char* name = policy == FsyncPolicy::kNone ? "none" : "always";
    fmt::print(stderr, "alternating, fsync {}\n", name);
    brief.move_to_folder(policy);
    lengthy.move_to_folder(policy);
    const Ratios ratios = compare(brief, lengthy, sizes);
    rows.push_back(
        fmt::format(R"({{"phase": "alternate in folders", "fsync": "{}", "short_p50_us": {:.1f}, )"
                    R"("long_p50_us": {:.1f}, "p50_ratio": {:.3f}, "mean_ratio": {:.3f}, )"
                    R"("rounds": {}, "commits_per_round": {}}})",
                    name, ratios.short_p50_us, ratios.long_p50_us, ratios.p50, ratios.mean,
                    sizes.rounds, sizes.commits_per_round));
    worst.p50 = std::max(worst.p50, ratios.p50);
    worst.mean = std::max(worst.mean, ratios.mean);
  }
  const Crowd crowd = measure_crowd(*runtime, sizes);
  const std::uint64_t commit_max_bytes =
      std::max({brief.commit_max_bytes(), lengthy.commit_max_bytes(), crowd.commit_max_bytes});
  fmt::print(R"({{"figures": {{"commit_p50_ratio_1e6_to_1e3": {:.3f}, )"
             R"("commit_mean_ratio_1e6_to_1e3": {:.3f}, )"
             R"("commit_max_bytes": {}, "manifest_head_bytes": {}}}, "rows": [{}]}})"
             "\n",
             worst.p50, worst.mean, commit_max_bytes, crowd.head_max_bytes, fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  // Beside the program: on the disk that holds the checkout, not in a temporary file system of
  // memory.
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                      fmt::format("commit.{}", getpid());
  std::filesystem::create_directories(folder);
  const int status =
      batchloom::run(folder.string(), quick ? batchloom::kQuick : batchloom::Sizes{});
  std::filesystem::remove_all(folder);
  return status;
}
