// SPDX-License-Identifier: Apache-2.0
#include "bench/pipeline_job.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "batchloom/base/freed_memory.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/client/checkpoint_pins.h"
#include "batchloom/client/rank_reader.h"
#include "batchloom/control/pipeline.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "bench/measure.h"
#include "bench/meeting.h"
#include "bench/pipeline_corpus.h"

namespace batchloom {
namespace {

using control::PipelineConfig;

constexpr std::chrono::minutes kPatience(5);  // With a step; then something is wrong.
constexpr std::string_view kGroup = "job";
constexpr std::chrono::milliseconds kReclaimEvery(50);
constexpr std::uint64_t kCheckpointSteps = 8;

store::StoreLocation location_of(const std::string& folder) {
  return {.url = folder, .folder = folder, .fsync = objstore::FsyncPolicy::kNone};
}

void make_stream(const store::StreamDeps& deps) {
  must(store::init_stream(deps, "bench", {}).status());
}

void produce(const PipelineConfig& config, const store::Stream& stream) {
  const auto files = objstore::make_posix_file_ops();
  const auto sources =
      must(control::PreparedSources::open(config, *files, stream.runtime(), {}, {}));
  const control::PipelineOptions options{
      .workers = 2, .change_from = {}, .reclaim_every = kReclaimEvery};
  const auto pipeline = must(control::Pipeline::open(config, *sources, stream, options, {}));
  must(pipeline->run({}).status());
}

/// As RankReader opens its consumer.
client::ConsumerOptions consumer_options(model::HdpRank rank) {
  client::ConsumerOptions options;
  options.rank = rank;
  options.ranks = kPipelineRanks;
  if (rank.value == 0) options.report_group = kGroup;
  return options;
}

/// Keeps the steps from here on, and no older ones.
void checkpoint(const store::Stream& stream, const client::Consumer& consumer) {
  const store::Step next = consumer.state().next_step;
  const store::PinRequest request{
      .group = std::string(kGroup), .id = fmt::format("step-{}", next.value), .step = next};
  must(client::pin_checkpoint(stream, request, 1, {}));
}

/// A rank that takes all steps of a stream, together with the others. The first one makes
/// checkpoints: what lies before them is removed from the stream.
void consume(const store::Stream& stream, model::HdpRank rank, Taken taken, Meeting& meeting) {
  Runtime& runtime = stream.runtime();
  const client::ConsumerOptions options = consumer_options(rank);
  client::HeadFeed feed(stream);
  client::BufferPool pool(options.prefetch_bytes, stream.counters());
  const auto consumer = must(client::Consumer::open(feed, options, {}));
  meeting.wait(0);  // Nobody's first step is removed before it is there.
  for (std::uint64_t step_number = 0;; ++step_number) {
    if (rank.value == 0 && step_number % kCheckpointSteps == 0) checkpoint(stream, *consumer);
    client::StepPtr step =
        must(consumer->next({.deadline = runtime.now() + kPatience, .stop = {}}));
    meeting.wait(step_number + 1);
    if (step == nullptr) return;
    if (taken == Taken::kTensors) must(client::view_for_trainer(std::move(step), pool).status());
  }
}

/// A process that opens the stream in `folder`.
std::unique_ptr<Child> spawn_on(const std::string& folder,
                                std::function<std::vector<double>(const store::Stream&)> body) {
  return std::make_unique<Child>([&] {
    const auto runtime = make_real_runtime();
    const auto store = must(store::OpenStore::open(location_of(folder), *runtime));
    const auto stream = must(store->open_stream({}));
    return body(*stream);
  });
}

/// Precondition: this process has no threads.
void make_folder_stream(const std::string& folder) {
  Child([&] {
    const auto runtime = make_real_runtime();
    const auto store = must(store::OpenStore::create(location_of(folder), *runtime));
    make_stream(store->deps());
    return std::vector<double>();
  }).join();
}

std::unique_ptr<Child> spawn_producer(const PipelineConfig& config, const std::string& folder) {
  return spawn_on(folder, [&](const store::Stream& stream) {
    keep_freed_memory();  // As the command does.
    produce(config, stream);
    return std::vector<double>();
  });
}

/// Each call's seconds in next(), from the second on; before them, those of the whole run.
std::vector<double> train(const std::string& folder, model::Rank rank, double compute_s,
                          const PipelineConfig& config) {
  const auto runtime = make_real_runtime();
  client::RankReaderOptions options;
  options.location = location_of(folder);
  options.group = kGroup;
  options.rank = rank;
  options.topology = config.topology.axes;
  const auto reader = must(client::RankReader::open(*runtime, std::move(options), {}));
  const auto compute =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(compute_s));
  const auto seconds_since = [&](Time begin) {
    return std::chrono::duration<double>(runtime->now() - begin).count();
  };
  std::vector<double> seconds = {0};
  Time begin;
  for (std::uint64_t step = 0; step < *config.run.steps; ++step) {
    const Time asked = runtime->now();
    const auto batch = must(reader->next({.deadline = runtime->now() + kPatience, .stop = {}}));
    BL_CHECK(batch != nullptr, "the stream is too short");
    if (step == 0) {
      begin = runtime->now();
    } else {
      seconds.push_back(seconds_since(asked));
    }
    must(runtime->sleep_until({.deadline = runtime->now() + compute, .stop = {}}));
  }
  seconds.front() = seconds_since(begin);
  return seconds;
}

}  // namespace

std::string_view to_string(Taken taken) {
  return taken == Taken::kStored ? "stored" : "tensors";
}

double run_in_processes(const PipelineConfig& config, const std::string& folder, Taken taken) {
  return Child([&] {
           make_folder_stream(folder);
           const auto producer = spawn_producer(config, folder);
           Meeting meeting(kPipelineRanks);
           std::vector<std::unique_ptr<Child>> ranks;
           for (std::uint32_t rank = 0; rank < kPipelineRanks; ++rank) {
             ranks.push_back(spawn_on(folder, [&](const store::Stream& stream) {
               consume(stream, model::HdpRank(rank), taken, meeting);
               return std::vector<double>();
             }));
           }
           for (const auto& rank : ranks) rank->join();
           producer->join();
           std::filesystem::remove_all(folder);
           return std::vector<double>{cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)};
         })
      .join()
      .at(0);
}

double run_in_memory(const PipelineConfig& config, Taken taken) {
  return Child([&] {
           keep_freed_memory();
           const auto runtime = make_real_runtime();
           Counters counters;
           objstore::MemoryStore objects(*runtime);
           const store::StreamDeps deps{*runtime, objects, counters};
           make_stream(deps);
           const auto stream = must(store::Stream::open(deps, {}, {}));
           Meeting meeting(kPipelineRanks);
           std::vector<std::unique_ptr<Task>> ranks;
           for (std::uint32_t rank = 0; rank < kPipelineRanks; ++rank) {
             ranks.push_back(runtime->spawn("rank", [&, rank](const std::stop_token&) {
               consume(*stream, model::HdpRank(rank), taken, meeting);
             }));
           }
           produce(config, *stream);
           for (const auto& rank : ranks) rank->join();
           return std::vector<double>{cpu_seconds(RUSAGE_SELF)};
         })
      .join()
      .at(0);
}

Waits run_with_trainers(const PipelineConfig& config, const std::string& folder, double compute_s) {
  make_folder_stream(folder);
  const auto producer = spawn_producer(config, folder);
  std::vector<std::unique_ptr<Child>> ranks;
  for (std::uint32_t rank = 0; rank < kPipelineRanks; ++rank) {
    ranks.push_back(std::make_unique<Child>(
        [&] { return train(folder, model::Rank(rank), compute_s, config); }));
  }
  double run_s = 0;
  double waited_s = 0;
  std::vector<double> waits;
  for (const auto& rank : ranks) {
    const std::vector<double> seconds = rank->join();
    run_s += seconds.front();
    for (std::size_t i = 1; i < seconds.size(); ++i) {
      waited_s += seconds[i];
      waits.push_back(seconds[i]);
    }
  }
  producer->join();
  std::filesystem::remove_all(folder);
  return {.share = waited_s / run_s, .p99_ms = quantile(waits, 0.99) * 1e3, .calls = waits.size()};
}

}  // namespace batchloom
