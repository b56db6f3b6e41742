// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/step_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <system_error>

#include "batchloom/base/random.h"
#include "batchloom/base/sim_runtime.h"

namespace batchloom::control {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Step and source of an order.
using Brought = std::pair<std::uint64_t, std::uint32_t>;

/// A step with so many samples of each source; an order has one sample.
planning::PlannedStep step_of(std::uint64_t step, const std::vector<std::uint32_t>& samples) {
  planning::PlannedStep planned{
      .step = model::Step(step),
      .members = {},
      .layout = {.plan = {}, .pictures = {}, .places = planning::PlaceTree::create({}).value()},
      .last = false,
      .next = {}};
  for (std::uint32_t source = 0; source < samples.size(); ++source) {
    for (std::uint32_t i = 0; i < samples[source]; ++i) {
      model::SampleMeta sample;
      sample.id.source = model::SourceId(source);
      sample.id.index = model::RecordIndex(i);
      sample.tokens = 8;
      planned.members.push_back(sample);
    }
  }
  return planned;
}

/// Brings nothing, as a test says, and counts.
class CountingFetcher final : public SampleFetcher {
 public:
  explicit CountingFetcher(std::function<void(const FetchOrder&)> work) : work_(std::move(work)) {}

  Result<Fetched> fetch(const FetchOrder& order, FetchPlace&, const CallOptions&) override {
    begun.emplace_back(order.step.value, order.source.value);
    for (const model::SampleMeta& sample : order.samples) ++samples[{order.step, sample.id}];
    most_at_once = std::max(most_at_once, ++at_once_);
    work_(order);
    --at_once_;
    return Fetched();
  }

  std::vector<Brought> begun;
  std::map<std::pair<model::Step, model::SampleId>, int> samples;  // How often each was brought.
  int most_at_once = 0;

 private:
  const std::function<void(const FetchOrder&)> work_;
  int at_once_ = 0;
};

void in_worlds(const std::function<void(SimProcess&, Random&)>& body) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimWorld world(seed);
    SimProcess& process = world.add_process("p");
    Random random(seed);
    process.start("main", [&] { body(process, random); });
    const Status ended = world.run();
    ASSERT_TRUE(ended.is_ok()) << "seed " << seed << ": " << ended.to_string();
  }
}

void pass(Runtime& runtime, Duration time) {
  ASSERT_TRUE(runtime.sleep_until({.deadline = runtime.now() + time}).is_ok());
}

/// A process of a machine that has room for so many more threads.
class FullMachine final : public Runtime {
 public:
  FullMachine(Runtime& process, std::uint32_t has_room) : room(has_room), process_(process) {}

  std::unique_ptr<Task> spawn(std::string name,
                              std::function<void(std::stop_token)> body) override {
    if (room == 0) throw std::system_error(EAGAIN, std::generic_category(), "no room for " + name);
    --room;
    return process_.spawn(std::move(name), std::move(body));
  }
  Time now() override { return process_.now(); }
  Status sleep_until(const CallOptions& call) override { return process_.sleep_until(call); }
  std::unique_ptr<Event> make_event() override { return process_.make_event(); }
  std::uint64_t random() override { return process_.random(); }
  Status check(const CallOptions& call) override { return process_.check(call); }

  std::uint32_t room;

 private:
  Runtime& process_;
};

StepLoaderOptions sample_by_sample(std::uint32_t workers) {
  return {.workers = workers, .order_bytes = 1};
}

/// What a second thread begins while the first waits for source 0 in the oldest step.
std::vector<Brought> beside_a_slow_source(SimProcess& process, const LoaderLanes& lanes) {
  const std::shared_ptr<Event> go_on = process.make_event();
  const std::shared_ptr<Event> begun = process.make_event();
  CountingFetcher fetcher([&](const FetchOrder& order) {
    if (order.step == model::Step(0)) {
      begun->set();
      EXPECT_TRUE(go_on->wait({}).is_ok());
    } else if (order.step == model::Step(1) && order.source == model::SourceId(0)) {
      go_on->set();
    }
  });
  StepLoader loader(process, fetcher, sample_by_sample(1));
  loader.submit(step_of(0, {1, 0}));
  EXPECT_TRUE(begun->wait({}).is_ok());
  for (std::uint64_t step = 1; step < 4; ++step) loader.submit(step_of(step, {1, 1}));
  loader.resize(2, lanes);
  EXPECT_TRUE(go_on->wait({}).is_ok());
  const std::vector<Brought> first = fetcher.begun;  // The other thread has not begun another.
  while (!loader.empty()) EXPECT_TRUE(loader.next({}).is_ok());
  EXPECT_EQ(fetcher.begun.size(), 7U);
  return first;
}

TEST(StepLoader, ASourceThatWaitsLeavesThreadsToOthersAndNobodyIdles) {
  in_worlds([](SimProcess& process, Random&) {
    const auto begun = beside_a_slow_source(
        process, {.of_source = {0, 1}, .threads = {1, 1}, .binds = {true, false}});
    ASSERT_GE(begun.size(), 5U);
    EXPECT_THAT(
        std::vector(begun.begin(), begun.begin() + 5),
        ElementsAre(Brought(0, 0), Brought(1, 1), Brought(2, 1), Brought(3, 1), Brought(1, 0)));
  });
}

TEST(StepLoader, WithoutLanesThatBindOrWithRoomInThemTheOldestOrderIsTaken) {
  in_worlds([](SimProcess& process, Random&) {
    for (const LoaderLanes& lanes :
         {LoaderLanes(), LoaderLanes{.of_source = {0, 1}, .threads = {2, 1}, .binds = {true, true}},
          LoaderLanes{.of_source = {0, 1}, .threads = {1, 1}, .binds = {false, true}}}) {
      const auto begun = beside_a_slow_source(process, lanes);
      ASSERT_GE(begun.size(), 2U);
      EXPECT_EQ(begun[1], Brought(1, 0));
    }
  });
}

TEST(StepLoader, OrdersOfTheOldestStepWaitForNoLane) {
  in_worlds([](SimProcess& process, Random&) {
    CountingFetcher fetcher([&](const FetchOrder&) { pass(process, seconds(1)); });
    StepLoader loader(process, fetcher, sample_by_sample(1));
    loader.resize(3, {.of_source = {0, 1}, .threads = {1, 1}, .binds = {true, true}});
    loader.submit(step_of(0, {6, 0}));
    loader.submit(step_of(1, {0, 6}));
    while (!loader.empty()) EXPECT_TRUE(loader.next({}).is_ok());
    ASSERT_EQ(fetcher.begun.size(), 12U);
    EXPECT_EQ(std::count(fetcher.begun.begin(), fetcher.begun.begin() + 6, Brought(0, 0)), 6);
  });
}

TEST(StepLoader, ThreadsThatAreToGoBringWhatTheyHave) {
  in_worlds([](SimProcess& process, Random&) {
    CountingFetcher fetcher([&](const FetchOrder&) { pass(process, seconds(1)); });
    StepLoader loader(process, fetcher, sample_by_sample(3));
    loader.submit(step_of(0, {9}));
    EXPECT_TRUE(loader.next({}).is_ok());
    EXPECT_EQ(fetcher.most_at_once, 3);
    loader.submit(step_of(1, {9}));
    loader.resize(1, {});
    EXPECT_EQ(loader.workers(), 1U);
    EXPECT_TRUE(loader.next({}).is_ok());
    fetcher.most_at_once = 0;
    loader.submit(step_of(2, {9}));
    EXPECT_TRUE(loader.next({}).is_ok());
    EXPECT_EQ(fetcher.most_at_once, 1);
    for (int i = 0; i < 100 && process.live_threads() > 2; ++i) {
      pass(process, seconds(1));
      loader.resize(1, {});  // Joins those that went.
    }
    EXPECT_EQ(process.live_threads(), 2U) << "this one, and a loader";
    loader.resize(5, {});
    loader.submit(step_of(3, {20}));
    EXPECT_TRUE(loader.next({}).is_ok());
    EXPECT_EQ(fetcher.most_at_once, 5);
    for (const auto& [sample, times] : fetcher.samples) EXPECT_EQ(times, 1);
    EXPECT_EQ(fetcher.samples.size(), 47U);
  });
}

TEST(StepLoader, AnyResizingBringsEachSampleOnceAndStepsInOrder) {
  in_worlds([](SimProcess& process, Random& random) {
    CountingFetcher fetcher([&](const FetchOrder&) { pass(process, Duration(1)); });
    StepLoader loader(process, fetcher, sample_by_sample(2));
    std::size_t samples = 0;
    std::uint64_t taken = 0;
    const auto take = [&] {
      const auto loaded = loader.next({});
      ASSERT_TRUE(loaded.is_ok());
      EXPECT_EQ(loaded->planned.step.value, taken++);
    };
    for (std::uint64_t step = 0; step < 30; ++step) {
      std::vector<std::uint32_t> of_source;
      for (int i = 0; i < 3; ++i) of_source.push_back(static_cast<std::uint32_t>(random.below(5)));
      for (const std::uint32_t count : of_source) samples += count;
      loader.submit(step_of(step, of_source));
      LoaderLanes lanes{
          .of_source = {0, 1, 0}, .threads = {1, 2}, .binds = {random.below(4) > 0, true}};
      if (random.below(3) == 0) lanes = {};
      loader.resize(static_cast<std::uint32_t>(1 + random.below(6)), lanes);
      if (loader.steps() > 1 + random.below(8)) take();
    }
    while (!loader.empty()) take();
    EXPECT_EQ(fetcher.samples.size(), samples);
    for (const auto& [sample, times] : fetcher.samples) EXPECT_EQ(times, 1);
  });
}

/// How many orders were brought at once, of a step that has enough for all threads.
int most_at_once_in(StepLoader& loader, CountingFetcher& fetcher, std::uint64_t step) {
  fetcher.most_at_once = 0;
  loader.submit(step_of(step, {20}));
  EXPECT_TRUE(loader.next({}).is_ok());
  return fetcher.most_at_once;
}

TEST(StepLoader, GoesOnWithTheThreadsThatCanBeMadeAndLaterTriesAgain) {
  in_worlds([](SimProcess& process, Random&) {
    CountingFetcher fetcher([&](const FetchOrder&) { pass(process, seconds(1)); });
    FullMachine machine(process, 2);
    StepLoader loader(machine, fetcher, sample_by_sample(5));
    EXPECT_EQ(most_at_once_in(loader, fetcher, 0), 2);
    loader.resize(5, {});
    EXPECT_EQ(most_at_once_in(loader, fetcher, 1), 2) << "there is still no room";
    machine.room = 1;
    loader.resize(5, {});
    EXPECT_EQ(most_at_once_in(loader, fetcher, 2), 3);
    machine.room = 9;
    loader.resize(5, {});
    EXPECT_EQ(most_at_once_in(loader, fetcher, 3), 5);
    EXPECT_EQ(machine.room, 7U) << "as many as were missing";
  });
}

TEST(StepLoader, WithFewerThreadsThanWantedOneGoesOnlyWhereFewerStillAreWanted) {
  in_worlds([](SimProcess& process, Random&) {
    CountingFetcher fetcher([&](const FetchOrder&) { pass(process, seconds(1)); });
    FullMachine machine(process, 3);
    StepLoader loader(machine, fetcher, sample_by_sample(8));
    loader.resize(4, {});
    EXPECT_EQ(most_at_once_in(loader, fetcher, 0), 3);
    loader.resize(2, {});
    most_at_once_in(loader, fetcher, 1);  // Who is to go may bring one more.
    EXPECT_EQ(most_at_once_in(loader, fetcher, 2), 2);
  });
}

TEST(StepLoader, WithoutAnyThreadTheReasonComesOut) {
  in_worlds([](SimProcess& process, Random&) {
    CountingFetcher fetcher([](const FetchOrder&) {});
    FullMachine machine(process, 0);
    EXPECT_THAT([&] { StepLoader loader(machine, fetcher, sample_by_sample(5)); },
                ThrowsMessage<std::system_error>(HasSubstr("no room for loader-0")));
    EXPECT_EQ(process.live_threads(), 1U) << "this one";
  });
}

}  // namespace
}  // namespace batchloom::control
