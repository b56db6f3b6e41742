// SPDX-License-Identifier: Apache-2.0
// From made-up records to what every rank gets of them: planner, constructors, store, consumers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/consumer.h"
#include "batchloom/construction/constructor_pool.h"
#include "batchloom/construction/corpus_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::simulator {
namespace {

using construction::ConstructionJob;
using construction::Constructor;
using construction::ConstructorPool;
using construction::Corpus;
using construction::CorpusShape;
using construction::StreamConstructor;
using model::HdpRank;
using model::Rank;
using planning::Balance;
using planning::PlannedStep;
using store::Seq;

constexpr std::array kStrategies = {Balance::kNone, Balance::kLpt, Balance::kKarmarkarKarp,
                                    Balance::kTwoLevel, Balance::kHdp};
constexpr std::size_t kSteps = 3;

/// The object of a job, built by itself.
Bytes object_of(const Corpus& corpus, const ConstructionJob& job, const store::StreamUuid& stream,
                store::Term term) {
  const auto options = corpus.options();
  const store::BatchOptions batch{
      .identity = {.stream = stream, .producer = "main", .term = term, .seq = job.seq},
      .token_width = construction::token_width_for(options->vocab),
      .origin = options->origin};
  return objstore::concatenate(construction::build_steps(batch, job.steps).value().parts);
}

/// A stream in memory on real threads.
class ConstructedStream {
 public:
  ConstructedStream() {
    const store::StreamDeps deps{*runtime_, memory_, counters_};
    EXPECT_TRUE(init_stream(deps, "test", {}).is_ok());
    stream_ = store::Stream::open(deps, {}, {}).value();
    session_ = store::ProducerSession::open(*stream_, "main", {}).value();
  }

  /// Builds and commits each step of the corpus that was planned, by so many constructors.
  void produce(const Corpus& corpus, std::span<const PlannedStep> steps, std::size_t constructors) {
    std::vector<std::unique_ptr<StreamConstructor>> owned;
    std::vector<Constructor*> all;
    for (std::size_t i = 0; i < constructors; ++i) {
      owned.push_back(std::make_unique<StreamConstructor>(
          fmt::format("constructor-{}", i), *stream_, session_->session(), corpus.options()));
      all.push_back(owned.back().get());
    }
    const auto commit = [this](std::span<const store::PendingBatch> batches,
                               const CallOptions& call) {
      return session_->commit(batches, call).status();
    };
    std::vector<ConstructionJob> jobs = corpus.jobs(steps);
    ConstructorPool pool(*runtime_, all, commit, {.first = session_->next_seq()});
    for (ConstructionJob& job : jobs) {
      ASSERT_EQ(pool.submit(std::move(job), {}).to_string(), "ok");
    }
    const construction::PoolEnd end = pool.stop({});
    ASSERT_TRUE(end.all_committed()) << end.reason.to_string();
  }

  /// What the slice gets of the first `count` steps.
  std::vector<client::StepPtr> consume(HdpRank rank, std::uint32_t ranks, std::size_t count) {
    client::HeadFeed feed(*stream_);
    client::ConsumerOptions options;
    options.rank = rank;
    options.ranks = ranks;
    const auto consumer = client::Consumer::open(feed, std::move(options), {}).value();
    std::vector<client::StepPtr> steps;
    for (std::size_t i = 0; i < count; ++i) steps.push_back(consumer->next({}).value());
    return steps;
  }

  /// The batch objects' bytes; of several attempts at one of them all.
  std::set<Bytes> objects() {
    std::set<Bytes> objects;
    const auto listing = memory_.list("d/", "", {}).value();
    for (;;) {
      const auto page = listing->next_page({}).value();
      if (page.empty()) return objects;
      for (const objstore::ListedObject& object : page) {
        objects.insert(memory_.get(object.key, {}, {}).value()->bytes);
      }
    }
  }
  /// What they are to be: each job built by itself.
  std::set<Bytes> expected_objects(const Corpus& corpus, std::span<const PlannedStep> steps) const {
    std::set<Bytes> objects;
    const std::vector<ConstructionJob> jobs = corpus.jobs(steps);
    for (const ConstructionJob& job : jobs) {
      objects.insert(object_of(corpus, job, stream_->uuid(), session_->term()));
    }
    return objects;
  }

 private:
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore memory_{*runtime_};
  Counters counters_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<store::ProducerSession> session_;
};

/// The step as all slices got it.
std::vector<std::vector<store::RunMicroBatch>> micro_batches_of(
    std::span<const std::vector<client::StepPtr>> slices, std::size_t step) {
  std::vector<std::vector<store::RunMicroBatch>> result;
  for (const auto& slice : slices) result.push_back(slice[step]->micro_batches);
  return result;
}

/// Whether ranks can run the step: with fixed groups all have as many micro-batches, among them
/// fillers where there is nothing to do.
void expect_equal_counts(const PlannedStep& step,
                         std::span<const std::vector<store::RunMicroBatch>> slices) {
  std::size_t fillers = 0;
  for (const auto& micro_batches : slices) {
    if (step.layout.plan.strategy != "hdp") {
      EXPECT_EQ(micro_batches.size(), slices[0].size());
    }
    fillers += static_cast<std::size_t>(std::ranges::count_if(
        micro_batches, [](const auto& micro_batch) { return micro_batch.pieces.empty(); }));
  }
  const auto planned = std::ranges::count_if(
      step.layout.plan.micro_batches,
      [](const model::MicroBatch& micro_batch) { return micro_batch.pieces.size() == 0; });
  EXPECT_EQ(fillers, static_cast<std::size_t>(planned));
}

/// Each rank is fed by one that reads the run of its slice, or reads it itself.
void expect_every_rank_fed(const PlannedStep& step) {
  const planning::PlaceTree& places = step.layout.places;
  for (Rank rank; rank.value < places.topology().world_size(); ++rank) {
    const Rank feeder = places.feeder(rank);
    EXPECT_EQ(places.topology().hdp_rank(feeder), places.topology().hdp_rank(rank));
    planning::TensorNeeds both = places.fetches(feeder);
    both |= places.needs(rank);
    EXPECT_EQ(both, places.fetches(feeder)) << "rank " << rank.value;
    EXPECT_TRUE(feeder == rank || !places.fetches(rank).any()) << "what is fed reads nothing";
  }
}

/// Meshes of so many ranks: flat, and with other axes where they divide it.
std::vector<std::string> meshes_of(std::uint32_t world) {
  std::vector<std::string> meshes = {fmt::format("dp={}", world)};
  if (world % 2 == 0) meshes.push_back(fmt::format("dp={} cp=2", world / 2));
  if (world % 4 == 0) meshes.push_back(fmt::format("pp=2 dp={} tp=2", world / 4));
  return meshes;
}

TEST(ConstructedStream, EveryRankOfEveryMeshGetsItsRecords) {
  for (std::uint32_t world = 1; world <= 16; ++world) {
    for (const std::string& axes : meshes_of(world)) {
      for (const Balance balance : kStrategies) {
        SCOPED_TRACE(fmt::format("{} by {}", axes, planning::to_string(balance)));
        Corpus corpus({.seed = world});
        const auto steps = corpus.plan(balance, axes, kSteps);
        ASSERT_EQ(steps.size(), kSteps);
        ConstructedStream stream;
        stream.produce(corpus, steps, 2);
        const std::uint32_t ranks = steps[0].layout.plan.topology.hdp_size();
        std::vector<std::vector<client::StepPtr>> slices;
        for (HdpRank rank; rank.value < ranks; ++rank) {
          slices.push_back(stream.consume(rank, ranks, kSteps));
        }
        for (std::size_t i = 0; i < kSteps; ++i) {
          const auto got = micro_batches_of(slices, i);
          EXPECT_EQ(corpus.problem(steps[i], got, slices[0][i]->token_width), "");
          EXPECT_EQ(slices[0][i]->global_valid_labels, steps[i].layout.plan.global_valid_labels);
          expect_equal_counts(steps[i], got);
          expect_every_rank_fed(steps[i]);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(ConstructedStream, AnyNumberOfConstructorsGivesTheSameBytes) {
  for (const std::size_t constructors : {1U, 2U, 5U}) {
    Corpus corpus({.seed = 4, .records = 60, .vocab = 90'000});
    const auto steps = corpus.plan(Balance::kTwoLevel, "dp=3", 12);
    ASSERT_EQ(steps.size(), 12U);
    ConstructedStream stream;
    stream.produce(corpus, steps, constructors);
    EXPECT_EQ(stream.objects(), stream.expected_objects(corpus, steps)) << constructors;
  }
}

/// A last step of few samples: some ranks have nothing to do.
TEST(ConstructedStream, FillersAreReadBackAsMicroBatchesOfNothing) {
  for (const Balance balance : kStrategies) {
    if (balance == Balance::kHdp) continue;
    Corpus corpus({.seed = 9, .sources = 1, .records = 2, .longest = 30});
    const auto steps = corpus.plan(balance, "dp=5", 1);
    ConstructedStream stream;
    stream.produce(corpus, steps, 1);
    std::vector<std::vector<client::StepPtr>> slices;
    for (HdpRank rank; rank.value < 5; ++rank) slices.push_back(stream.consume(rank, 5, 1));
    const auto got = micro_batches_of(slices, 0);
    expect_equal_counts(steps[0], got);
    EXPECT_EQ(corpus.problem(steps[0], got, store::TokenWidth::k16), "");
    const auto idle = std::ranges::count_if(got, [](const auto& rank) {
      return std::ranges::all_of(rank, [](const auto& batch) { return batch.pieces.empty(); });
    });
    EXPECT_GE(idle, 3) << planning::to_string(balance);
    for (const auto& rank : got) EXPECT_EQ(rank.size(), 1U);
  }
}

}  // namespace
}  // namespace batchloom::simulator
