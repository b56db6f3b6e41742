// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/rank_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/stream_events.h"
#include "batchloom/store/trimmer.h"

namespace batchloom::client {
namespace {

using std::chrono::seconds;
using store::TokenWidth;
using testing::ElementsAre;

/// The real one; whatever `meanwhile` does happens when somebody first sleeps, which takes no time.
class RuntimeWithoutNights final : public Runtime {
 public:
  explicit RuntimeWithoutNights(std::function<void()> meanwhile)
      : meanwhile_(std::move(meanwhile)) {}

  Time now() override { return real_->now(); }
  Status sleep_until(const CallOptions& call) override {
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return real_->check({.deadline = kNever, .stop = call.stop});
  }
  std::unique_ptr<Task> spawn(std::string name,
                              std::function<void(std::stop_token)> body) override {
    return real_->spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return real_->make_event(); }
  std::uint64_t random() override { return real_->random(); }
  Status check(const CallOptions& call) override { return real_->check(call); }

 private:
  const std::unique_ptr<Runtime> real_ = make_real_runtime();
  std::function<void()> meanwhile_;
};

/// A stream in a folder, and its producer.
class RankReaderTest : public testing::Test {
 protected:
  store::StoreLocation location() const {
    return {.url = folder_.path(), .folder = folder_.path(), .fsync = objstore::FsyncPolicy::kNone};
  }

  void make_stream() {
    store_ = must(store::OpenStore::create(location(), *runtime_));
    must(store::init_stream(store_->deps(), "test", {}));
    stream_ = must(store_->open_stream({}));
    producer_ = std::make_unique<TestProducer>(*stream_);
  }

  /// Steps for 2 ranks, whose samples lie whole on one each.
  void append(std::uint64_t steps, TokenWidth width = TokenWidth::k16) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      const TestStep step =
          make_whole_step({.seed = 100 * i, .ranks = 2, .samples = 4, .width = width});
      producer_->append(std::span(&step, 1));
    }
  }

  /// A step whose plan is said to be of this strategy.
  void append_of(std::string_view strategy) {
    TestStep step = make_whole_step({.ranks = 2, .width = TokenWidth::k16});
    step.plan.strategy = strategy;
    step.plan.digest = model::plan_digest(step.plan);
    producer_->append(std::span(&step, 1));
  }

  RankReaderOptions options(std::uint32_t rank = 0, std::string_view axes = "dp=2") const {
    RankReaderOptions options;
    options.location = location();
    options.group = "job";
    options.rank = model::Rank(rank);
    options.topology = must(model::Topology::parse(axes));
    return options;
  }
  Result<std::unique_ptr<RankReader>> try_open(RankReaderOptions options) {
    return RankReader::open(*runtime_, std::move(options),
                            {.deadline = runtime_->now() + seconds(60)});
  }
  std::unique_ptr<RankReader> open(RankReaderOptions options) {
    return must(try_open(std::move(options)));
  }
  std::vector<std::string> pins() {
    std::vector<std::string> names;
    for (const store::Pin& pin : must(store::list_pins(*stream_, {}))) {
      names.push_back(fmt::format("{}/{}@{}", pin.name.group, pin.name.id, pin.step.value));
    }
    return names;
  }

  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  const objstore::ScratchFolder folder_;
  std::unique_ptr<store::OpenStore> store_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<TestProducer> producer_;
};

TEST_F(RankReaderTest, HandsOutStepsAsArraysAndTheStateAfterEach) {
  make_stream();
  append(2);
  must(store::end_stream(*stream_, {}));
  const auto reader = open(options());
  ConsumerState before{.stream = stream_->uuid(), .next_step = Step(0), .samples_hash = 0};
  for (std::uint64_t number = 0; number < 2; ++number) {
    const auto batch = must(reader->next({}));
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->step().step, Step(number));
    EXPECT_EQ(batch->state.next_step, Step(number + 1));
    EXPECT_EQ(batch->state.samples_hash,
              next_samples_hash(before.samples_hash, batch->step().samples_digest));
    EXPECT_EQ(batch->view.micro_batches.size(), batch->step().micro_batches.size());
    EXPECT_EQ(reader->state().next_step, Step(number + 1));
    before = batch->state;
  }
  EXPECT_EQ(must(reader->next({})), nullptr) << "the end";
  EXPECT_EQ(reader->counters().at("client_steps"), 2U);
  const auto counters = reader->counters();
  // One a step, and another where next() did not wait for arrays that were being made ahead.
  const std::uint64_t buffers =
      counters.at("client_buffers_made") + counters.at("client_buffers_reused");
  EXPECT_GE(buffers, 2U);
  EXPECT_LE(buffers, 4U);
}

TEST_F(RankReaderTest, WaitsForAStreamAndSaysWhatItWaitedFor) {
  const Status refused =
      RankReader::open(*runtime_, options(), {.deadline = runtime_->now()}).status();
  EXPECT_TRUE(is_error(refused, ErrorKind::kNotFound,
                       {folder_.path(), "on host ", "directory that all hosts share", "s3://"}));

  RuntimeWithoutNights runtime([this] {
    make_stream();
    append(1);
  });
  const auto reader = must(RankReader::open(runtime, options(), {}));
  EXPECT_NE(must(reader->next({})), nullptr);
}

TEST_F(RankReaderTest, RefusesWhatCannotBe) {
  make_stream();
  append(1);
  EXPECT_TRUE(
      is_error(try_open(options(2)).status(), ErrorKind::kInvalid, {"rank 2 is none of 2 ranks"}));
  RankReaderOptions both = options();
  both.start = Step(0);
  both.resume = ConsumerState{.stream = stream_->uuid(), .next_step = Step(0)};
  EXPECT_TRUE(is_error(try_open(both).status(), ErrorKind::kInvalid, {"not both"}));
  both.start = {};
  both.resume->stream.bytes[0] ^= std::byte{1};
  EXPECT_TRUE(is_error(try_open(both).status(), ErrorKind::kInvalid,
                       {"the state is of stream", stream_->uuid().to_string()}));
  both.resume = ConsumerState{.stream = stream_->uuid(), .next_step = Step(2)};
  EXPECT_TRUE(is_error(try_open(both).status(), ErrorKind::kInvalid, {"step 2 is not there"}));
  RankReaderOptions nameless = options();
  nameless.group = "";
  EXPECT_TRUE(is_error(try_open(nameless).status(), ErrorKind::kInvalid, {"group"}));
}

TEST_F(RankReaderTest, RefusesTheStateOfAnotherHistory) {
  make_stream();
  append(1);
  // A copy, which goes on by itself.
  const objstore::ScratchFolder other;
  std::filesystem::copy(folder_.path(), other.path(), std::filesystem::copy_options::recursive);
  append(2);
  const auto reader = open(options(1));
  std::vector<ConsumerState> states;
  for (int i = 0; i < 3; ++i) states.push_back(must(reader->next({}))->state);

  const store::StoreLocation copy{
      .url = other.path(), .folder = other.path(), .fsync = objstore::FsyncPolicy::kNone};
  const auto copied_store = must(store::OpenStore::open(copy, *runtime_));
  const auto copied = must(copied_store->open_stream({}));
  TestProducer producer(*copied);
  for (int i = 0; i < 3; ++i) {
    const TestStep step =
        make_whole_step({.seed = 7'000U + static_cast<unsigned>(i), .ranks = 2, .samples = 4});
    producer.append(std::span(&step, 1));
  }
  RankReaderOptions resumed = options(1);
  for (std::size_t i = 0; i < 3; ++i) {
    resumed.resume = states[i];
    resumed.location = location();
    EXPECT_TRUE(try_open(resumed).is_ok()) << i;
    resumed.location = copy;
    const Status opened = try_open(resumed).status();
    if (i == 0) {
      EXPECT_TRUE(opened.is_ok()) << "what both have; " << opened.to_string();
      continue;
    }
    EXPECT_TRUE(is_error(
        opened, ErrorKind::kInvalid,
        {fmt::format("step {} with samples of digest {:016x}", i, states[i].last->samples_digest),
         "another history", stream_->uuid().to_string()}));
  }
  resumed.resume = states[0];
  const auto on_copy = open(resumed);
  EXPECT_TRUE(is_error(on_copy->seek(states[2], {}), ErrorKind::kInvalid, {"another history"}));
  EXPECT_EQ(on_copy->state(), states[0]) << "the position stays";

  // States of before have no last step.
  resumed.resume->last.reset();
  resumed.resume->next_step = Step(2);
  EXPECT_TRUE(try_open(resumed).is_ok());
}

TEST_F(RankReaderTest, AStateGoesOnWhereItsLastStepIsGone) {
  make_stream();
  append(3);
  const auto reader = open(options(1));
  ConsumerState state;
  for (int i = 0; i < 2; ++i) state = must(reader->next({}))->state;
  RankReaderOptions resumed = options(1);
  resumed.resume = state;

  resumed.resume->last = DeliveredStep{Step(3), 1};
  EXPECT_TRUE(is_error(try_open(resumed).status(), ErrorKind::kInvalid,
                       {"has seen step 3", "ends before step 3"}));

  must(store::pin_step(*stream_, {.group = "other", .id = "a", .step = Step(2)}, {}));
  store::ManifestReader heads(*stream_);
  ASSERT_EQ(must(store::trim(*stream_, heads, {})).first_step, Step(2));
  resumed.resume->last = DeliveredStep{Step(1), 1};
  EXPECT_TRUE(try_open(resumed).is_ok()) << "nobody can tell any more";
}

TEST_F(RankReaderTest, AGroupThatHasRunBeforeNeedsItsState) {
  make_stream();
  append(4);
  ConsumerState state;
  {
    const auto first = open(options());
    for (int i = 0; i < 2; ++i) state = must(first->next({}))->state;
    EXPECT_TRUE(try_open(options(1)).is_ok()) << "the other ranks of a new job";
  }
  const Status missing = try_open(options()).status();
  EXPECT_EQ(missing.error_case(), ErrorCase::kResumeMissing);
  EXPECT_TRUE(is_error(missing, ErrorKind::kInvalid, {"group job has run", "open cursor"}));
  RankReaderOptions other = options();
  other.group = "another";
  EXPECT_TRUE(try_open(other).is_ok());

  RankReaderOptions resumed = options();
  resumed.resume = state;
  const auto again = open(resumed);
  EXPECT_EQ(again->state().next_step, Step(2));
  EXPECT_EQ(try_open(options(1)).status().error_case(), ErrorCase::kResumeMissing)
      << "one rank without the checkpoint that the others have";
  EXPECT_TRUE(again->close({}).is_ok());
  EXPECT_TRUE(try_open(options(1)).is_ok()) << "a closed cursor is no cursor";

  EXPECT_TRUE(again->pin(state, "step-2", {}, {}).is_ok());
  for (const std::uint32_t rank : {0U, 1U}) {
    const Status pinned = try_open(options(rank)).status();
    EXPECT_EQ(pinned.error_case(), ErrorCase::kResumeMissing);
    EXPECT_TRUE(is_error(pinned, ErrorKind::kInvalid, {"a pin step-2 at step 2"}));
  }
  RankReaderOptions anew = options();
  anew.start = Step(0);
  EXPECT_EQ(open(anew)->state().next_step, Step(0));
}

TEST_F(RankReaderTest, OnlyTheFirstRankReportsTheGroupsCursor) {
  make_stream();
  append(2);
  const auto cursor = [&] { return must(store::read_live_cursor(*stream_, "job", {})); };
  const auto second = open(options(1));
  EXPECT_EQ(cursor(), std::nullopt);
  const auto first = open(options(0));
  EXPECT_FALSE(cursor()->closed);
  static_cast<void>(must(first->next({})));
  EXPECT_TRUE(first->close({}).is_ok());
  EXPECT_EQ(cursor()->cursor, Step(1));
  EXPECT_TRUE(cursor()->closed);
}

TEST_F(RankReaderTest, SeveralProcessesOfARankAgreeOnTheirStart) {
  make_stream();
  append(3);
  must(store::skip_step(*stream_, Step(1), {}));
  const RankStart begin = must(RankReader::find_start(*runtime_, options(), {}));
  EXPECT_EQ(begin.state, (ConsumerState{stream_->uuid(), Step(0), 0}));
  EXPECT_EQ(must(store::read_live_cursor(*stream_, "job", {})), std::nullopt);
  must(store::skip_step(*stream_, Step(2), {}));
  RankReaderOptions second = options();
  second.resume = begin.state;
  second.min_slot = begin.slot;
  second.report_cursor = false;
  const auto reader = open(second);
  EXPECT_THAT(reader->skipped(), ElementsAre(Step(1)));
  EXPECT_EQ(must(store::read_live_cursor(*stream_, "job", {})), std::nullopt);
  for (const std::uint64_t step : {0U, 2U})
    EXPECT_EQ(must(reader->next({}))->step().step.value, step);

  static_cast<void>(open(options()));
  EXPECT_EQ(RankReader::find_start(*runtime_, options(), {}).status().error_case(),
            ErrorCase::kResumeMissing);
}

TEST_F(RankReaderTest, ReadsAStreamForAnyWorld) {
  make_stream();
  append(1);
  const TestStep& stored = producer_->steps()[0];
  std::uint64_t tokens = 0;
  for (const model::PlanSample& sample : stored.plan.samples) tokens += sample.tokens;
  for (const char* axes : {"dp=1", "dp=2", "dp=3", "pp=2 dp=2 tp=2"}) {
    const auto topology = must(model::Topology::parse(axes));
    std::uint64_t seen = 0;
    for (std::uint32_t rank = 0; rank < topology.world_size(); ++rank) {
      const auto batch = must(open(options(rank, axes))->next({}));
      const bool fetches = topology.coordinates(model::Rank(rank))[model::Axis::kTp] == 0 &&
                           topology.coordinates(model::Rank(rank))[model::Axis::kPp] == 0;
      for (const store::RunMicroBatch& micro_batch : batch->step().micro_batches) {
        for (const store::RunPiece& piece : micro_batch.pieces) {
          if (fetches) seen += piece.hi - piece.lo;
        }
      }
      EXPECT_TRUE(store::close_live_cursor(*stream_, "job", {}).is_ok());
    }
    EXPECT_EQ(seen, tokens) << axes;
  }
}

TEST_F(RankReaderTest, RefusesSplitSamplesUnlessItIsToldTo) {
  make_stream();
  const TestStep step = make_ring_step({.ranks = 2, .width = TokenWidth::k16});
  producer_->append(std::span(&step, 1));
  RankReaderOptions whole = options();
  whole.start = Step(0);
  EXPECT_TRUE(is_error(open(whole)->next({}).status(), ErrorKind::kInvalid,
                       {"step 0 has samples that lie on 2 ranks"}));
  whole.split_samples = true;
  EXPECT_NE(must(open(whole)->next({})), nullptr);
}

TEST_F(RankReaderTest, RefusesStreamsOfHdpAtOpenThoughTheirFirstStepIsWhole) {
  make_stream();
  RankReaderOptions whole = options();
  whole.start = Step(0);
  const auto early = open(whole);
  append_of("hdp");
  const Status refused = try_open(whole).status();
  EXPECT_EQ(refused.error_case(), ErrorCase::kSplitSamples);
  EXPECT_TRUE(is_error(refused, ErrorKind::kInvalid, {"step 0 is balanced by hdp"}));
  EXPECT_EQ(early->next({}).status().to_string(), refused.to_string());
  whole.split_samples = true;
  EXPECT_NE(must(open(whole)->next({})), nullptr);
}

TEST_F(RankReaderTest, OneRankTakesStreamsOfHdp) {
  make_stream();
  append_of("hdp");
  EXPECT_NE(must(open(options(0, "dp=1"))->next({})), nullptr);
}

TEST_F(RankReaderTest, RefusesHdpThatBeginsWithALaterRunOfTheProducer) {
  make_stream();
  append_of("two_level");
  producer_ = std::make_unique<TestProducer>(*stream_);
  append_of("hdp");
  const auto reader = open(options());
  EXPECT_NE(must(reader->next({})), nullptr);
  EXPECT_TRUE(
      is_error(reader->next({}).status(), ErrorKind::kInvalid, {"step 1 is balanced by hdp"}));
}

TEST_F(RankReaderTest, AStepThatTrainersCannotTakeIsNotPassedOver) {
  make_stream();
  append(3, TokenWidth::k32);  // Of random bits: half of the ids are above the most of an int32.
  const auto reader = open(options());
  const Status refused = reader->next({}).status();
  ASSERT_TRUE(is_error(refused, ErrorKind::kInvalid, {"step 0", "token ids above"}));
  EXPECT_EQ(reader->next({}).status().to_string(), refused.to_string());
  EXPECT_TRUE(reader->seek({.stream = stream_->uuid(), .next_step = Step(1)}, {}).is_ok());
  EXPECT_TRUE(is_error(reader->next({}).status(), ErrorKind::kInvalid, {"step 1"}));
}

TEST_F(RankReaderTest, PinsAreTheGroups) {
  make_stream();
  append(1);
  const auto reader = open(options(1));
  ConsumerState state{.stream = stream_->uuid(), .next_step = Step(0)};
  for (const std::uint64_t step : {5U, 6U, 7U}) {
    state.next_step = Step(step);
    EXPECT_TRUE(reader->pin(state, fmt::format("step-{}", step), 2, {}).is_ok());
  }
  EXPECT_TRUE(reader->pin(state, "best", {}, {}).is_ok());
  EXPECT_THAT(pins(), ElementsAre("job/step-6@6", "job/best@7", "job/step-7@7"));
  EXPECT_EQ(must(reader->unpin("best", {})), 1U);
  EXPECT_EQ(must(reader->unpin("best", {})), 0U);
  EXPECT_THAT(pins(), ElementsAre("job/step-6@6", "job/step-7@7"));
  state.stream.bytes[3] ^= std::byte{1};
  EXPECT_TRUE(is_error(reader->pin(state, "x", {}, {}), ErrorKind::kInvalid, {"another job's"}));
}

}  // namespace
}  // namespace batchloom::client
