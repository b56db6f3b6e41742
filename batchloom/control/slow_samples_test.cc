// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/slow_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/control/step_loader.h"

namespace batchloom::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

model::SampleMeta slow_sample(std::uint32_t source, std::uint64_t record) {
  model::SampleMeta sample;
  sample.id.source = model::SourceId(source);
  sample.id.index = model::RecordIndex(record);
  sample.tokens = 8;
  return sample;
}

/// Samples 0 and 1 of source 0, for step 4.
std::shared_ptr<OrderOut> slow_order() {
  auto out = std::make_shared<OrderOut>();
  out->order.step = model::Step(4);
  out->order.samples = {slow_sample(0, 0), slow_sample(0, 1)};
  out->place.move_to({.sample = 1, .stage = FetchStage::kRead});
  return out;
}

/// Logs after 40 s, ends after 200 s: looks every 10 s.
class SlowSamplesTest : public testing::Test {
 protected:
  Status look_after(Duration pause) {
    now_ += pause;
    return slow_.look(std::vector<OrderOutPtr>{order_}, now_);
  }
  /// Regular looks, until the first error or for so long.
  Status look_for(Duration time) {
    for (Duration passed = {}; passed < time; passed += slow_.look_every()) {
      BL_RETURN_IF_ERROR(look_after(slow_.look_every()));
    }
    return Status::ok();
  }

  SlowSamples slow_{
      {.slow_after = seconds(40), .sample_max = seconds(200), .source_names = {"docs"}}};
  std::shared_ptr<OrderOut> order_ = slow_order();
  Time now_ = Time(std::chrono::hours(5));
};

TEST_F(SlowSamplesTest, OneThatHangsIsLoggedOnceAndInTheEndAnErrorThatNamesIt) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(look_for(seconds(200)).is_ok()) << "the first look only begins to count";
  const Status late = look_for(seconds(10));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(late.is(ErrorKind::kUnavailable));
  EXPECT_EQ(late.message(),
            "loading step 4: sample 0:0:1:0 of source 'docs', reading its record for 200.0 s: no "
            "more than 200.0 s is waited; is its storage there?");
  EXPECT_THAT(said, HasSubstr("step 4 waits for sample 0:0:1:0 of source 'docs', reading its "
                              "record for 40.0 s"));
  EXPECT_EQ(said.find("waits for"), said.rfind("waits for")) << said;
  EXPECT_THAT(said, HasSubstr(late.message()));
}

TEST_F(SlowSamplesTest, OneThatMovesIsNotSlow) {
  testing::internal::CaptureStderr();
  for (const FetchStage stage : {FetchStage::kOpen, FetchStage::kRead, FetchStage::kCheck}) {
    for (std::uint32_t sample = 0; sample < 2; ++sample) {
      order_->place.move_to({.sample = sample, .stage = stage});
      EXPECT_TRUE(look_for(seconds(40)).is_ok());
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(SlowSamplesTest, WhileTheProcessIsStoppedNoTimeCounts) {
  EXPECT_TRUE(look_for(seconds(30)).is_ok());
  for (int stop = 0; stop < 3; ++stop) EXPECT_TRUE(look_after(minutes(30)).is_ok());
  // 20 s so far, and 20 s for each stop.
  EXPECT_TRUE(look_for(seconds(110)).is_ok());
  EXPECT_TRUE(look_for(seconds(10)).is(ErrorKind::kUnavailable));
}

TEST_F(SlowSamplesTest, LooksComeBeforeAnyLimit) {
  EXPECT_EQ(slow_.look_every(), seconds(10));
  EXPECT_EQ(SlowSamples({.slow_after = seconds(40), .sample_max = seconds(2)}).look_every(),
            std::chrono::milliseconds(500));
}

TEST_F(SlowSamplesTest, AnUnknownSourceIsNamedByItsNumber) {
  order_->order.samples = {slow_sample(3, 9)};
  order_->order.source = model::SourceId(3);
  EXPECT_EQ(slow_.describe(*order_), "sample none of source '3', reading its record");
  order_->place.move_to({.sample = 0, .stage = FetchStage::kOpen});
  EXPECT_EQ(slow_.describe(*order_), "sample 3:0:9:0 of source '3', opening its shard");
}

/// Brings orders as a test says.
class ScriptedFetcher final : public SampleFetcher {
 public:
  using Fetch = std::function<Status(const FetchOrder&, FetchPlace&)>;
  explicit ScriptedFetcher(Fetch fetch) : fetch_(std::move(fetch)) {}

  Result<Fetched> fetch(const FetchOrder& order, FetchPlace& place, const CallOptions&) override {
    BL_RETURN_IF_ERROR(fetch_(order, place));
    return Fetched{};
  }

 private:
  const Fetch fetch_;
};

planning::PlannedStep slow_step(std::uint64_t number) {
  return {.step = model::Step(number),
          .members = {slow_sample(0, number)},
          .layout = {.plan = {}, .pictures = {}, .places = planning::PlaceTree::create({}).value()},
          .last = false,
          .next = {}};
}

/// Simulated worlds of one process, for many seeds; `keeper` runs outside of it.
void on_schedules(const std::function<void(SimProcess& process, SimProcess& keeper)>& body) {
  for (std::uint64_t seed = 0; seed < 50 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimWorld world(seed);
    SimProcess& process = world.add_process("run");
    SimProcess& keeper = world.add_process("keeper");
    process.start("main", [&] { body(process, keeper); });
    const Status ended = world.run();
    ASSERT_TRUE(ended.is_ok()) << ended.to_string();
  }
}

void sleep_for(Runtime& runtime, Duration time) {
  EXPECT_TRUE(runtime.sleep_until({.deadline = runtime.now() + time}).is_ok());
}

TEST(SlowSamplesOfALoader, AProcessThatWasStoppedGoesOn) {
  on_schedules([](SimProcess& process, SimProcess& keeper) {
    // Frozen amid the read, and for longer than any sample may take.
    const std::shared_ptr<Event> reading = process.make_event();
    keeper.start("keeper", [&, reading] {
      EXPECT_TRUE(reading->wait({}).is_ok());
      process.suspend();
      sleep_for(keeper, minutes(20));
      process.resume();
    });
    ScriptedFetcher fetcher([&](const FetchOrder&, FetchPlace& place) {
      place.move_to({.sample = 0, .stage = FetchStage::kRead});
      sleep_for(process, seconds(20));
      reading->set();
      sleep_for(process, seconds(20));
      return Status::ok();
    });
    StepLoader loader(process, fetcher, {});
    loader.submit(slow_step(0));
    const auto loaded = loader.next({});
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().to_string();
    EXPECT_GE(process.now().time_since_epoch(), minutes(20));
  });
}

TEST(SlowSamplesOfALoader, TheStepOfTheSampleThatHangsIsNamed) {
  testing::internal::CaptureStderr();
  on_schedules([](SimProcess& process, SimProcess&) {
    const std::shared_ptr<Event> go_on = process.make_event();
    ScriptedFetcher fetcher([&](const FetchOrder& order, FetchPlace& place) {
      if (order.step == model::Step(6)) {
        EXPECT_TRUE(go_on->wait({}).is_ok());
        return Status::ok();
      }
      // Slow, but it comes.
      for (std::uint32_t moved = 0; moved < 100; ++moved) {
        place.move_to({.sample = moved, .stage = FetchStage::kRead});
        sleep_for(process, seconds(1));
      }
      return Status::ok();
    });
    StepLoader loader(
        process, fetcher,
        {.workers = 2, .slow = {.slow_after = seconds(8), .sample_max = seconds(40)}});
    loader.submit(slow_step(5));
    loader.submit(slow_step(6));
    const auto loaded = loader.next({});
    EXPECT_TRUE(loaded.is(ErrorKind::kUnavailable)) << loaded.status().to_string();
    EXPECT_THAT(loaded.status().to_string(), HasSubstr("loading step 6: sample 0:0:6:0 of"));
    go_on->set();
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("loading step 6: sample"));
}

TEST(SlowSamplesOfALoader, AnErrorOfAStepNamesIt) {
  on_schedules([](SimProcess& process, SimProcess&) {
    ScriptedFetcher fetcher(
        [](const FetchOrder&, FetchPlace&) { return Status::corruption("a.jsonl: cut short"); });
    StepLoader loader(process, fetcher, {});
    loader.submit(slow_step(5));
    EXPECT_EQ(loader.next({}).status().message(), "loading step 5: a.jsonl: cut short");
  });
}

}  // namespace
}  // namespace batchloom::control
