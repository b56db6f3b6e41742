// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "batchloom/base/real_runtime.h"
#include "batchloom/control/pipeline_run_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/live_cursor.h"

namespace batchloom::control {
namespace {

using construction::Corpus;
using construction::CorpusShape;
using planning::Balance;
using testing::HasSubstr;
using testing::IsEmpty;

/// A stream in memory, filled from a corpus.
class Plant {
 public:
  explicit Plant(const CorpusShape& shape = {.seed = 5}) : corpus_(shape), fetcher_(corpus_) {
    const store::StreamDeps deps{*runtime_, memory_, counters_};
    EXPECT_TRUE(store::init_stream(deps, "test", {}).is_ok());
    stream_ = store::Stream::open(deps, {}, {}).value();
    options_.graph = corpus_.graph(Balance::kTwoLevel);
    options_.topology = model::Topology::parse("dp=3").value();
    options_.objects = *corpus_.options();
  }

  /// A session from where the stream ends, and a run of it.
  Result<RunEnd> run(const std::stop_token& stop = {}) {
    prepare();
    return run_->run(stop);
  }

  void prepare() {
    session_ = store::ProducerSession::open(*stream_, "main", {}).value();
    run_ = std::make_unique<PipelineRun>(PipelineRoles{*stream_, *session_, corpus_, fetcher_},
                                         options_, state());
  }

  PipelineState state() {
    if (!session_->state().empty()) return decode_pipeline_state(session_->state()).value();
    PipelineState state;
    state.struck = struck_;
    state.planner = planning::first_state(options_.graph, corpus_).value();
    return state;
  }

  std::vector<std::string> content() const { return content_of(*stream_); }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore memory_{*runtime_};
  Counters counters_;
  Corpus corpus_;
  CorpusFetcher fetcher_;
  std::vector<RecordName> struck_;
  PipelineRunOptions options_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<store::ProducerSession> session_;
  std::unique_ptr<PipelineRun> run_;
};

std::vector<std::string> undisturbed(const std::vector<RecordName>& struck = {},
                                     const CorpusShape& shape = {.seed = 5}) {
  Plant plant(shape);
  plant.struck_ = struck;
  EXPECT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  return plant.content();
}

TEST(PipelineRun, CommitsEachStepAsItIsPlanned) {
  Plant plant;
  ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  const auto steps = plant.corpus_.plan(Balance::kTwoLevel, "dp=3", 1000);
  store::BatchReader reader(*plant.stream_);
  const auto entries = entries_of(*plant.stream_);
  ASSERT_EQ(entries.size(), steps.size());
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto index = reader.read_index(entries[i], {}).value();
    EXPECT_EQ(index->steps.front().plan, steps[i].layout.plan) << i;
    for (const model::SampleMeta& member : steps[i].members) tokens += member.tokens;
  }
  const PipelineProgress progress = plant.run_->progress();
  EXPECT_EQ(progress.next_step.value, steps.size());
  EXPECT_EQ(progress.steps, steps.size());
  EXPECT_EQ(progress.tokens, tokens);
  EXPECT_EQ(progress.memory_bytes, 0U);
  EXPECT_LE(progress.imbalance_after, progress.imbalance_before);
}

TEST(PipelineRun, CountsBySource) {
  Plant plant;
  plant.options_.indexed_bad_records = {0, 7};
  ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  const auto steps = plant.corpus_.plan(Balance::kTwoLevel, "dp=3", 1000);
  std::vector<SourceProgress> expected(3);
  for (const planning::PlannedStep& step : steps) {
    for (const model::SampleMeta& member : step.members) {
      ++expected[member.id.source.value].samples;
      expected[member.id.source.value].tokens += member.tokens;
    }
  }
  const PipelineProgress progress = plant.run_->progress();
  ASSERT_EQ(progress.sources.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const SourceProgress& source = progress.sources[i];
    EXPECT_EQ(source.samples, expected[i].samples);
    EXPECT_EQ(source.tokens, expected[i].tokens);
    EXPECT_EQ(source.epoch, 0U);
    EXPECT_EQ(source.bad_records, i == 1 ? 7U : 0U);
    EXPECT_GT(source.bytes, source.tokens * 2) << "ids of two bytes, and rows";
    EXPECT_GT(source.busy, Duration::zero());
  }
}

TEST(PipelineRun, TellsWhatShareASourceShallHave) {
  Plant plant;
  plant.options_.steps = 1;
  ASSERT_EQ(plant.run().value(), RunEnd::kAllSteps);
  const PipelineProgress first = plant.run_->progress();
  ASSERT_EQ(first.sources.size(), 3U);
  for (const SourceProgress& source : first.sources) EXPECT_DOUBLE_EQ(source.share, 1.0 / 3);
  // In the end they have nothing more.
  plant.options_.steps = std::nullopt;
  ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  const PipelineProgress last = plant.run_->progress();
  for (const SourceProgress& source : last.sources) EXPECT_EQ(source.share, 0);
}

TEST(PipelineRun, TellsWhichSourceItWaitsForAndHowLong) {
  Plant plant;
  plant.options_.loaders.workers = 3;
  const std::shared_ptr<Event> go_on = plant.runtime_->make_event();
  const auto wait_of = [](const PipelineProgress& progress, std::size_t source) {
    return source < progress.sources.size() ? progress.sources[source].waited : Duration::zero();
  };
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions& call) {
    const bool hangs = order.step.value == 2 && order.source.value == 1;
    return hangs ? go_on->wait(call) : Status::ok();
  };
  std::optional<Result<RunEnd>> end;
  plant.prepare();
  const auto runner =
      plant.runtime_->spawn("run", [&](const std::stop_token&) { end = plant.run_->run({}); });
  const Time until = plant.runtime_->now() + std::chrono::seconds(60);
  PipelineProgress seen;
  // It grows while the wait goes on.
  while (wait_of(seen, 1) < std::chrono::milliseconds(20) && plant.runtime_->now() < until) {
    seen = plant.run_->progress();
  }
  EXPECT_GE(wait_of(seen, 1), std::chrono::milliseconds(20));
  EXPECT_EQ(seen.waits_for, WaitsFor::kSources);
  EXPECT_EQ(seen.held_up_by, model::SourceId(1));
  EXPECT_GE(seen.waited[index_of(WaitsFor::kSources)], wait_of(seen, 1));
  go_on->set();
  runner->join();
  ASSERT_EQ(end->value(), RunEnd::kSourcesStop);
  const PipelineProgress after = plant.run_->progress();
  EXPECT_EQ(after.waits_for, WaitsFor::kNothing);
  EXPECT_GE(wait_of(after, 1), wait_of(seen, 1));
  Duration sum{};
  for (const SourceProgress& source : after.sources) sum += source.waited;
  EXPECT_LE(sum, after.waited[index_of(WaitsFor::kSources)]);
}

TEST(PipelineRun, IsTheSameForAnyNumberOfThreadsAndAnyBounds) {
  const auto expected = undisturbed();
  ASSERT_GT(expected.size(), 3U);
  for (const std::uint32_t threads : {1U, 2U, 7U}) {
    for (const std::uint64_t bytes : {1U, 4'000U, 1U << 30}) {
      Plant plant;
      plant.options_.constructors = threads;
      plant.options_.loaders = {.workers = threads, .bytes_max = bytes, .order_bytes = bytes / 3};
      plant.options_.pool.bytes_max = bytes;
      ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
      EXPECT_EQ(plant.content(), expected) << threads << " threads, " << bytes << " bytes";
    }
  }
}

TEST(PipelineRun, IsTheSameWhileThreadsComeAndGo) {
  const CorpusShape shape{.seed = 5, .records = 150};
  const auto expected = undisturbed({}, shape);
  ASSERT_GT(expected.size(), 30U);
  Plant plant(shape);
  // Few steps ahead, so that most are loaded after the change.
  plant.options_.loaders = {.workers = 1, .bytes_max = 30'000, .order_bytes = 700};
  // Whatever is measured counts as waiting, and every step as one that was waited for: so threads
  // become as many as there may be.
  plant.options_.scaling = LoaderScalerOptions{
      .limits = {.cores = 2, .threads_per_core = 3, .order_bytes = 700}, .waited_most = -1};
  plant.options_.thread_times = [] { return ThreadTimes(); };
  std::atomic<std::uint32_t> most = 0;
  plant.fetcher_.before = [&](const FetchOrder&, const CallOptions&) {
    const std::uint32_t now = plant.run_->progress().loader_threads;
    for (std::uint32_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    return Status::ok();
  };
  testing::internal::CaptureStderr();
  ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(": loaders have 6 threads instead of 1: load "));
  EXPECT_EQ(most, 6U);
  EXPECT_EQ(plant.content(), expected);
}

TEST(PipelineRun, GoesOnExactlyWhereItWasStopped) {
  const auto expected = undisturbed();
  for (int stop_after = 1; stop_after < 40; stop_after += 3) {
    Plant plant;
    plant.options_.loaders.order_bytes = 1'000;
    std::stop_source stop;
    std::atomic<int> orders = 0;
    plant.fetcher_.before = [&](const FetchOrder&, const CallOptions&) {
      if (++orders == stop_after) stop.request_stop();
      return Status::ok();
    };
    EXPECT_EQ(plant.run(stop.get_token()).value(), RunEnd::kStopped) << stop_after;
    const auto first = plant.content();
    ASSERT_LE(first.size(), expected.size());
    EXPECT_TRUE(std::equal(first.begin(), first.end(), expected.begin()));
    EXPECT_EQ(plant.run().value(), RunEnd::kSourcesStop);
    EXPECT_EQ(plant.content(), expected) << stop_after;
  }
}

TEST(PipelineRun, EndsAfterItsStepsAndGoesOnWhenThereAreMore) {
  const auto expected = undisturbed();
  Plant plant;
  for (const std::uint64_t steps : {0U, 2U, 2U, 3U}) {
    plant.options_.steps = steps;
    EXPECT_EQ(plant.run().value(), RunEnd::kAllSteps);
    EXPECT_EQ(plant.content().size(), steps);
  }
  plant.options_.steps = std::nullopt;
  EXPECT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  EXPECT_EQ(plant.content(), expected);
}

TEST(PipelineRun, BadRecordsAreStruckOutAsIfNobodyHadCountedOnThem) {
  const std::vector<RecordName> bad = {{model::SourceId(0), model::RecordIndex(3)},
                                       {model::SourceId(1), model::RecordIndex(0)},
                                       {model::SourceId(2), model::RecordIndex(11)}};
  const auto expected = undisturbed(bad);
  ASSERT_NE(expected, undisturbed());
  for (const std::uint32_t threads : {1U, 4U}) {
    Plant plant;
    plant.fetcher_.bad = {bad.begin(), bad.end()};
    plant.options_.loaders = {.workers = threads, .order_bytes = 700};
    ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
    EXPECT_EQ(plant.content(), expected);
    const PipelineProgress progress = plant.run_->progress();
    EXPECT_EQ(progress.struck, 3U);
    for (const SourceProgress& source : progress.sources) EXPECT_EQ(source.bad_records, 1U);
    // The state remembers them.
    plant.session_ = store::ProducerSession::open(*plant.stream_, "main", {}).value();
    EXPECT_EQ(plant.state().struck, bad);
  }
}

TEST(PipelineRun, OneBadRecordTooManyEndsItByName) {
  Plant plant;
  for (std::uint64_t record = 0; record < 20; ++record) {
    plant.fetcher_.bad.insert({model::SourceId(1), model::RecordIndex(record)});
  }
  plant.options_.bad_records = 4;
  const auto end = plant.run();
  ASSERT_TRUE(end.is(ErrorKind::kExhausted)) << end.status().to_string();
  EXPECT_THAT(end.status().to_string(), HasSubstr("bad records, and 4 are allowed; the last: rec"));
}

TEST(PipelineRun, BadRecordsThatIndexesKnowOfCountToo) {
  Plant plant;
  for (std::uint64_t record = 0; record < 20; ++record) {
    plant.fetcher_.bad.insert({model::SourceId(1), model::RecordIndex(record)});
  }
  plant.options_.bad_records = 1'000;
  plant.options_.indexed_bad_records = {2'000, 997};
  const auto end = plant.run();
  ASSERT_TRUE(end.is(ErrorKind::kExhausted)) << end.status().to_string();
  EXPECT_THAT(end.status().to_string(), HasSubstr("has 1001 bad records, and 1000 are allowed"));
}

TEST(PipelineRun, AFaultOfASourceEndsItWithTheStepNamed) {
  Plant plant;
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions&) {
    if (order.step.value < 2) return Status::ok();
    return Status::corruption("a.jsonl: offset 7: cut short");
  };
  const auto end = plant.run();
  ASSERT_TRUE(end.is(ErrorKind::kCorruption)) << end.status().to_string();
  EXPECT_THAT(end.status().to_string(), HasSubstr("loading step 2: a.jsonl: offset 7: cut short"));
  EXPECT_EQ(plant.content().size(), 2U) << "what was loaded before is committed";
}

TEST(PipelineRun, ASampleThatDoesNotComeIsNamedAndEndsIt) {
  Plant plant;
  plant.options_.loaders.workers = 3;
  plant.options_.loaders.slow.slow_after = std::chrono::milliseconds(20);
  plant.options_.loaders.slow.sample_max = std::chrono::milliseconds(200);
  const std::shared_ptr<Event> go_on = plant.runtime_->make_event();
  std::atomic<bool> hangs = false;
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions&) {
    // As storage does: no stop token ends it.
    if (order.step.value == 2 && !hangs.exchange(true)) (void)go_on->wait({});
    return Status::ok();
  };
  testing::internal::CaptureStderr();
  const auto end = plant.run();
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(end.is(ErrorKind::kUnavailable)) << end.status().to_string();
  EXPECT_THAT(end.status().to_string(), testing::ContainsRegex("loading step 2: sample .*:.* of "
                                                               "source '.*', reading its record"));
  EXPECT_THAT(said, HasSubstr("step 2 waits for sample "));
  EXPECT_THAT(said, HasSubstr("no more than 0.2 s is waited"));
  EXPECT_EQ(plant.content().size(), 2U) << "what was loaded before is committed";
  go_on->set();
  // Timing decides no membership: the next run makes what an undisturbed one makes.
  EXPECT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  EXPECT_EQ(plant.content(), undisturbed());
}

TEST(PipelineRun, StorageThatFailsForNowIsAskedAgain) {
  Plant plant;
  std::atomic<int> failures = 0;
  plant.options_.loaders.attempts = 3;
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions&) {
    if (order.step.value != 2 || failures >= 2) return Status::ok();
    ++failures;
    return Status::unavailable("read a.jsonl: Input/output error");
  };
  ASSERT_EQ(plant.run().value(), RunEnd::kSourcesStop);
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(plant.content(), undisturbed());
}

TEST(PipelineRun, StorageThatKeepsFailingEndsItWithSampleAndStage) {
  Plant plant;
  std::atomic<int> failures = 0;
  plant.options_.loaders = {.workers = 1, .attempts = 3};
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions&) {
    if (order.step.value != 2) return Status::ok();
    ++failures;
    return Status::unavailable("read a.jsonl: Input/output error");
  };
  const auto end = plant.run();
  ASSERT_TRUE(end.is(ErrorKind::kUnavailable)) << end.status().to_string();
  EXPECT_EQ(failures % 3, 0);
  EXPECT_THAT(end.status().to_string(),
              testing::ContainsRegex("loading step 2: sample .*:.* of source '.*', reading its "
                                     "record, tried 3 times: read a.jsonl: Input"));
}

TEST(PipelineRun, ANewerSessionFencesIt) {
  Plant plant;
  std::unique_ptr<store::ProducerSession> newer;
  std::atomic<bool> opened = false;
  plant.fetcher_.before = [&](const FetchOrder& order, const CallOptions&) {
    if (order.step.value == 2 && !opened.exchange(true)) {
      newer = store::ProducerSession::open(*plant.stream_, "main", {}).value();
    }
    return Status::ok();
  };
  plant.options_.pool.bytes_max = 1;
  const auto end = plant.run();
  EXPECT_TRUE(end.is(ErrorKind::kFenced)) << end.status().to_string();
}

TEST(PipelineRun, WithoutAConsumerItWaitsAtItsLead) {
  Plant plant;
  plant.options_.lead = {.lead = 2, .url = "./stream", .next_step = {}};
  std::stop_source stop;
  std::optional<Result<RunEnd>> end;
  const auto runner = plant.runtime_->spawn(
      "run", [&](const std::stop_token&) { end = plant.run(stop.get_token()); });
  const auto wait_for = [&](auto reached) {
    const Time until = plant.runtime_->now() + std::chrono::seconds(60);
    while (!reached() && plant.runtime_->now() < until) {
      (void)plant.runtime_->sleep_until(
          {.deadline = plant.runtime_->now() + std::chrono::milliseconds(1)});
    }
    return reached();
  };
  const auto steps = [&] { return entries_of(*plant.stream_).size(); };
  ASSERT_TRUE(wait_for([&] { return steps() == 2; }));
  ASSERT_TRUE(wait_for([&] { return plant.run_->progress().waits_for == WaitsFor::kConsumer; }));
  const auto cursor = store::open_live_cursor(*plant.stream_, "job", store::Step(1), {});
  ASSERT_TRUE(cursor.is_ok()) << cursor.status().to_string();
  EXPECT_TRUE(wait_for([&] { return steps() == 3; }));
  EXPECT_GT(plant.run_->progress().waited[index_of(WaitsFor::kConsumer)], Duration::zero());
  stop.request_stop();
  runner->join();
  EXPECT_EQ(end->value(), RunEnd::kStopped);
}

}  // namespace
}  // namespace batchloom::control
