// SPDX-License-Identifier: Apache-2.0
#include "bench/pipeline_corpus.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/base/random.h"
#include "batchloom/control/pipeline_graph.h"
#include "batchloom/control/prepared_sources.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/planning/planner.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

constexpr std::uint32_t kVocab = 50'304;
constexpr std::uint32_t kCapacityTokens = 16'384;      ///< Of micro-batches, where samples fit.
constexpr std::uint64_t kIds = 0x7fff'7fff'7fff'7fff;  ///< Four that are below it.

template <class T>
void put(std::ofstream& out, T value) {
  std::byte bytes[sizeof(T)];
  store_le(value, bytes);
  out.write(reinterpret_cast<const char*>(bytes), sizeof(T));
}

/// As Megatron's IndexedDatasetBuilder does, of documents with one sequence each.
void write_index(const std::string& path, const Corpus& corpus) {
  constexpr std::uint8_t kU16 = 8;
  std::ofstream out(path, std::ios::binary);
  out.write("MMIDIDX\0\0", 9);
  put(out, std::uint64_t{1});
  put(out, kU16);
  put(out, corpus.samples());
  put(out, corpus.samples() + 1);
  const auto tokens = static_cast<std::uint32_t>(corpus.sample_bytes / kPipelineTokenBytes);
  for (std::uint64_t i = 0; i < corpus.samples(); ++i) put(out, tokens);
  for (std::uint64_t i = 0; i < corpus.samples(); ++i) put(out, i * corpus.sample_bytes);
  for (std::uint64_t i = 0; i <= corpus.samples(); ++i) put(out, i);
  BL_CHECK(out.flush().good(), path);
}

void write_data(const std::string& path, const Corpus& corpus) {
  std::ofstream out(path, std::ios::binary);
  Bytes step(kPipelineStepBytes);
  Random random(corpus.sample_bytes);
  for (std::uint64_t i = 0; i < corpus.steps; ++i) {
    for (std::size_t at = 0; at < step.size(); at += 8) store_le(random.next() & kIds, &step[at]);
    out.write(reinterpret_cast<const char*>(step.data()),
              static_cast<std::streamsize>(step.size()));
  }
  BL_CHECK(out.flush().good(), path);
}

/// A file, mapped for reading.
class MappedFile {
 public:
  MappedFile(const std::string& path, std::size_t size_bytes) : size_bytes_(size_bytes) {
    const objstore::Fd file = objstore::Fd::open(path, O_RDONLY);
    data_ = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    BL_CHECK(file.is_open() && data_ != MAP_FAILED, path);
  }
  ~MappedFile() { munmap(data_, size_bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  const std::size_t size_bytes_;
  void* data_ = nullptr;
};

/// Calls `io` with what is left, until nothing is.
template <class Io>
void do_all(std::span<std::byte> bytes, const Io& io) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t size = objstore::retry_interrupted([&] { return io(bytes.subspan(done), done); });
    BL_CHECK(size > 0, "a bare file");
    done += static_cast<std::size_t>(size);
  }
}

void copy_bare(const Corpus& corpus, const std::vector<std::vector<std::uint64_t>>& order,
               const std::string& folder) {
  const MappedFile data(corpus.data, corpus.samples() * corpus.sample_bytes);
  Bytes gathered(kPipelineStepBytes);
  Bytes got(kPipelineStepBytes);
  for (std::size_t step = 0; step < order.size(); ++step) {
    std::byte* to = gathered.data();
    for (const std::uint64_t sample : order[step]) {
      std::memcpy(to, data.data() + sample * corpus.sample_bytes, corpus.sample_bytes);
      to += corpus.sample_bytes;
    }
    const std::string path = fmt::format("{}/{}", folder, step);
    const objstore::Fd file = objstore::Fd::open(path, O_RDWR | O_CREAT | O_EXCL);
    BL_CHECK(file.is_open(), path);
    do_all(gathered, [&](std::span<std::byte> rest, std::size_t) {
      return write(file.get(), rest.data(), rest.size());
    });
    do_all(got, [&](std::span<std::byte> rest, std::size_t done) {
      return pread(file.get(), rest.data(), rest.size(), static_cast<off_t>(done));
    });
    BL_CHECK(unlink(path.c_str()) == 0, path);
  }
}

}  // namespace

Corpus write_corpus(const std::string& folder, std::uint64_t sample_bytes, std::uint64_t steps) {
  Corpus corpus{.data = fmt::format("{}/{}.bin", folder, sample_bytes),
                .sample_bytes = sample_bytes,
                .steps = steps};
  write_data(corpus.data, corpus);
  write_index(fmt::format("{}/{}.idx", folder, sample_bytes), corpus);
  return corpus;
}

control::PipelineConfig pipeline_over(const Corpus& corpus, std::uint64_t steps) {
  const auto sample_tokens = static_cast<std::uint32_t>(corpus.sample_bytes / kPipelineTokenBytes);
  control::PipelineConfig config;
  config.seed = 17;
  config.run.steps = steps;
  config.topology.axes = must(model::Topology::create({{model::Axis::kDp, kPipelineRanks}}));
  config.topology.capacity_tokens = std::max(kCapacityTokens, sample_tokens);
  config.step.units = kPipelineStepBytes / kPipelineTokenBytes;
  config.step.max_sample_tokens = sample_tokens;
  config.tokens.tokenizer = control::TokenizerKind::kIds;
  config.tokens.vocab = kVocab;
  control::SourceConfig& source = config.sources.emplace_back();
  source.name = "ids";
  source.files = {corpus.data};
  source.paths = {corpus.data};
  source.format = control::SourceFormat::kMegatron;
  source.exhausted = planning::Exhausted::kRepeat;
  return config;
}

std::vector<std::vector<std::uint64_t>> stored_order(Runtime& runtime,
                                                     const control::PipelineConfig& config) {
  const auto files = objstore::make_posix_file_ops();
  const auto sources = must(control::PreparedSources::open(config, *files, runtime, {}, {}));
  const planning::GraphSpec graph = control::graph_of(config);
  planning::PlannerState state = must(planning::first_state(graph, sources->set()));
  std::vector<std::vector<std::uint64_t>> order;
  while (order.size() < *config.run.steps) {
    auto planned =
        must(planning::plan_step(graph, state, sources->set(), config.topology.axes)).value();
    const model::StepPlan& plan = planned.layout.plan;
    std::vector<std::uint64_t>& step = order.emplace_back();
    for (const model::Piece& piece : plan.pieces) {
      step.push_back(plan.samples[piece.sample.value].id.index.value);
    }
    state = std::move(planned.next);
  }
  return order;
}

double cpu_of_bare_copies(const Corpus& corpus,
                          const std::vector<std::vector<std::uint64_t>>& order,
                          const std::string& folder) {
  return Child([&] {
           copy_bare(corpus, order, folder);
           return std::vector<double>{cpu_seconds(RUSAGE_SELF)};
         })
      .join()
      .at(0);
}

}  // namespace batchloom
