// SPDX-License-Identifier: Apache-2.0
// What does the way from files to ranks cost, beside the copies that it cannot do without?
//
//  1. Throughput. Samples of one size lie in a Megatron pair, in the page cache. A pipeline makes
//     steps of 8 MiB of them, in a random order, and 8 ranks take them, each a process of its own:
//     as views of what is stored, or as arrays for a trainer. Between them is a local directory
//     without fsync, or a store in memory, and then all are one process. The ranks wait for each
//     other after each step, as training makes them, and the first one makes a checkpoint every 8
//     steps: what lies before it is removed, as the bare loop removes its files. What counts is the
//     CPU time, user and system, of all processes and threads, from the making of the stream to its
//     removal.
//  2. In turn with that a bare loop gathers the same samples in the same order from the
//     memory-mapped file, writes files of 8 MiB, reads them back and unlinks them: no plan, no
//     checksum, one thread. Medians of the rounds count, of shares too.
//  3. Waits. Ranks that compute for longer than the pipeline needs for a step, and a clock around
//     each next() from the second on.
//
// Whether each figure reaches what it is held to goes to stderr, and how many do not is a figure.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "batchloom/base/real_runtime.h"
#include "bench/bars.h"
#include "bench/measure.h"
#include "bench/pipeline_corpus.h"
#include "bench/pipeline_job.h"

namespace batchloom {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;

struct Effort {
  std::vector<std::uint64_t> sample_bytes = {kKiB, 4 * kKiB, 64 * kKiB, 256 * kKiB, 1024 * kKiB};
  std::uint64_t steps = 256;
  int rounds = 5;
  std::uint64_t trained_steps = 100;
  double compute_s = 0.25;
};

Effort quick_effort() {
  return {.sample_bytes = {4 * kKiB, 256 * kKiB},
          .steps = 4,
          .rounds = 1,
          .trained_steps = 8,
          .compute_s = 0.1};
}

constexpr Bar kBars[] = {
    {.figure = "copy_share_4kib", .at_least = 0.6},
    {.figure = "copy_share_256kib", .at_least = 0.75},
    {.figure = "samples_per_cpu_s_4kib", .at_least = 120'000},
    {.figure = "next_wait_share", .at_most = 0.001},
    {.figure = "next_wait_p99_ms", .at_most = 2},
};

/// What is measured in each round.
enum Way : std::size_t { kBare, kStored, kTensors, kMemoryStored, kMemoryTensors, kWays };
constexpr std::string_view kWayNames[kWays] = {"bare", "stored", "tensors", "memory_stored",
                                               "memory_tensors"};

/// One size of samples, measured round by round.
class SizeBench {
 public:
  SizeBench(const std::string& folder, std::uint64_t sample_bytes, const Effort& effort)
      : folder_(folder),
        corpus_(write_corpus(folder, sample_bytes, effort.steps)),
        config_(pipeline_over(corpus_, effort.steps)),
        order_(planned_order()) {
    for (int round = 0; round < effort.rounds; ++round) measure_round(static_cast<unsigned>(round));
  }
  ~SizeBench() {
    const std::filesystem::path data(corpus_.data);
    for (const char* ending : {".bin", ".idx"}) {
      std::filesystem::remove(std::filesystem::path(data).replace_extension(ending));
    }
  }
  SizeBench(const SizeBench&) = delete;
  SizeBench& operator=(const SizeBench&) = delete;

  double samples_per_cpu_s(Way way) const { return samples() / median(cpu_s_[way]); }
  /// Of the bare loop's samples per CPU second.
  double copy_share(Way way) const {
    std::vector<double> shares;
    for (std::size_t round = 0; round < cpu_s_[way].size(); ++round) {
      shares.push_back(cpu_s_[kBare][round] / cpu_s_[way][round]);
    }
    return median(shares);
  }

  void add_rows(std::vector<std::string>& rows) const {
    for (std::size_t i = 0; i < kWays; ++i) {
      const Way way = static_cast<Way>(i);
      rows.push_back(
          fmt::format(R"({{"sample_bytes": {}, "way": "{}", "samples_per_cpu_s": {:.0f}, )"
                      R"("copy_share": {:.3f}, "cpu_us_per_sample": {:.2f}}})",
                      corpus_.sample_bytes, kWayNames[i], samples_per_cpu_s(way), copy_share(way),
                      1e6 / samples_per_cpu_s(way)));
    }
  }

 private:
  double samples() const { return static_cast<double>(corpus_.samples()); }

  std::vector<std::vector<std::uint64_t>> planned_order() const {
    std::vector<std::vector<std::uint64_t>> order;
    // In a child: whoever forks has no threads.
    const std::vector<double> numbers = Child([&] {
                                          const auto runtime = make_real_runtime();
                                          std::vector<double> all;
                                          for (const auto& step : stored_order(*runtime, config_)) {
                                            all.insert(all.end(), step.begin(), step.end());
                                          }
                                          return all;
                                        }).join();
    const std::size_t per_step = corpus_.samples_per_step();
    BL_CHECK(numbers.size() == corpus_.samples(), "each sample is planned once");
    for (std::size_t at = 0; at < numbers.size(); at += per_step) {
      auto& step = order.emplace_back();
      for (std::size_t i = 0; i < per_step; ++i) {
        step.push_back(static_cast<std::uint64_t>(numbers[at + i]));
      }
    }
    return order;
  }

  double measure(Way way) const {
    const std::string stream = folder_ + "/stream";
    switch (way) {
      case kStored: return run_in_processes(config_, stream, Taken::kStored);
      case kTensors: return run_in_processes(config_, stream, Taken::kTensors);
      case kMemoryStored: return run_in_memory(config_, Taken::kStored);
      case kMemoryTensors: return run_in_memory(config_, Taken::kTensors);
      default: return cpu_of_bare_copies(corpus_, order_, folder_);
    }
  }

  /// Each round begins elsewhere: who comes after whom may matter.
  void measure_round(unsigned round) {
    for (std::size_t i = 0; i < kWays; ++i) {
      const auto way = static_cast<Way>((i + round) % kWays);
      cpu_s_[way].push_back(measure(way));
    }
  }

  const std::string folder_;
  const Corpus corpus_;
  const control::PipelineConfig config_;
  const std::vector<std::vector<std::uint64_t>> order_;
  std::vector<double> cpu_s_[kWays];
};

Waits measure_waits(const std::string& folder, const Effort& effort) {
  const Corpus corpus = write_corpus(folder, 4 * kKiB, effort.steps);
  const control::PipelineConfig config = pipeline_over(corpus, effort.trained_steps);
  return run_with_trainers(config, folder + "/stream", effort.compute_s);
}

int run(const std::string& folder, const Effort& effort) {
  std::vector<std::string> rows;
  std::map<std::string, double> figures;
  for (const std::uint64_t sample_bytes : effort.sample_bytes) {
    fmt::print(stderr, "samples of {} KiB\n", sample_bytes / kKiB);
    const SizeBench bench(folder, sample_bytes, effort);
    bench.add_rows(rows);
    const std::string size = fmt::format("{}kib", sample_bytes / kKiB);
    figures["copy_share_" + size] = bench.copy_share(kStored);
    figures["copy_share_tensors_" + size] = bench.copy_share(kTensors);
    figures["samples_per_cpu_s_" + size] = bench.samples_per_cpu_s(kStored);
    figures["samples_per_cpu_s_tensors_" + size] = bench.samples_per_cpu_s(kTensors);
  }
  fmt::print(stderr, "trainers that compute {} s a step\n", effort.compute_s);
  const Waits waits = measure_waits(folder, effort);
  rows.push_back(fmt::format(R"({{"way": "trainers", "calls": {}, "compute_s": {}}})", waits.calls,
                             effort.compute_s));
  figures["next_wait_share"] = waits.share;
  figures["next_wait_p99_ms"] = waits.p99_ms;
  figures["bars_missed"] = report_bars(kBars, figures);
  std::vector<std::string> shown;
  for (const auto& [name, value] : figures) {
    shown.push_back(fmt::format(R"("{}": {:.5g})", name, value));
  }
  fmt::print(R"({{"figures": {{{}}}, "rows": [{}]}})"
             "\n",
             fmt::join(shown, ", "), fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  // Beside the program: on the disk that holds the checkout, not in a temporary file system of
  // memory.
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                      fmt::format("pipeline.{}", getpid());
  std::filesystem::create_directories(folder);
  const int status =
      batchloom::run(folder.string(), quick ? batchloom::quick_effort() : batchloom::Effort{});
  std::filesystem::remove_all(folder);
  return status;
}
