// SPDX-License-Identifier: Apache-2.0
// What a step costs in requests, counted by the metered store: batch objects and the manifest
// apart.
#include <gtest/gtest.h>

#include "batchloom/client/client_world_testing.h"
#include "batchloom/objstore/forwarding_store_testing.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using objstore::ByteRange;
using objstore::ObjectData;
using std::chrono::seconds;

/// Meters what consumers do: batch objects by one metered store, all else by another.
class ApartStore final : public objstore::ForwardingStore {
 public:
  explicit ApartStore(objstore::ObjectStore& inner)
      : ForwardingStore(rest_), data_(inner, data_counters_), rest_(inner, rest_counters_) {}

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override {
    return key.starts_with("d/") ? data_.get(key, range, call) : rest_.get(key, range, call);
  }
  Result<std::optional<objstore::ObjectInfo>> head(std::string_view key,
                                                   const CallOptions& call) override {
    return key.starts_with("d/") ? data_.head(key, call) : rest_.head(key, call);
  }

  std::uint64_t data(std::string_view name) { return data_counters_.counter(name).value(); }
  std::uint64_t rest(std::string_view name) { return rest_counters_.counter(name).value(); }
  /// Whether batch objects met no HEAD, and nothing was written, listed or removed.
  bool only_reads() {
    std::uint64_t others = data("objstore_head_calls");
    for (const std::string kind : {"put", "list", "remove"}) {
      others += rest("objstore_" + kind + "_calls");
    }
    return others == 0;
  }

 private:
  Counters data_counters_;
  Counters rest_counters_;
  objstore::MeteredStore data_;
  objstore::MeteredStore rest_;
};

/// A process of consumers whose requests are counted.
class Process {
 public:
  explicit Process(ClientWorld& world) : objects_(world.memory()) {
    const store::StreamDeps deps{world.runtime(), objects_, counters_};
    stream_ = must(store::Stream::open(deps, {}, {}));
    feed_ = std::make_unique<HeadFeed>(*stream_);
  }

  std::unique_ptr<Consumer> open(ConsumerOptions options) {
    return must(Consumer::open(*feed_, std::move(options), {}));
  }
  ApartStore& objects() { return objects_; }
  std::uint64_t gets_of_data() { return objects_.data("objstore_get_calls"); }

 private:
  ApartStore objects_;
  Counters counters_;
  std::unique_ptr<store::Stream> stream_;
  std::unique_ptr<HeadFeed> feed_;
};

void read_steps(Consumer& consumer, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t number = first; number < end; ++number) {
    const StepPtr step = must(consumer.next({}));
    ASSERT_NE(step, nullptr) << "the end";
    EXPECT_EQ(step->step, Step(number));
  }
}

TEST(ConsumerCost, AfterWarmUpAStepCostsOneGet) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    Process process(world);
    auto consumer = process.open({});
    read_steps(*consumer, 0, 1);
    ASSERT_EQ(process.gets_of_data(), 1U);
    for (std::uint64_t number = 1; number < 20; ++number) {
      world.producer().append_small(1);
      read_steps(*consumer, number, number + 1);
      EXPECT_EQ(process.gets_of_data(), number + 1) << "step " << number;
    }
    EXPECT_TRUE(process.objects().only_reads());
  });
}

TEST(ConsumerCost, TheEndOfTheStreamCostsNoMore) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(10);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    Process process(world);
    auto consumer = process.open({});
    read_steps(*consumer, 0, 10);
    EXPECT_EQ(process.gets_of_data(), 10U);
    EXPECT_EQ(must(consumer->next({})), nullptr);
    EXPECT_EQ(process.gets_of_data(), 10U);
  });
}

struct Shape {
  std::uint32_t ranks;
  std::uint32_t steps_per_object;
};

/// GETs of batch objects for all steps of 4 objects, by rank 1.
std::uint64_t gets_of_four(ClientWorld& world, const Shape& shape,
                           std::optional<std::uint64_t> skipped = std::nullopt) {
  world.producer().append_small(4, shape.steps_per_object, shape.ranks);
  const bool has_table = !world.entry_of(Step(0)).run_table.empty();
  EXPECT_EQ(has_table, std::uint64_t{shape.ranks} * shape.steps_per_object <= 128);
  if (skipped) static_cast<void>(must(store::skip_step(world.other(), Step(*skipped), {})));
  Process process(world);
  auto consumer = process.open({.rank = HdpRank(1)});
  for (std::uint64_t number = 0; number < world.producer().steps().size(); ++number) {
    if (number != skipped) read_steps(*consumer, number, number + 1);
  }
  world.pass(seconds(5));
  EXPECT_TRUE(process.objects().only_reads());
  return process.gets_of_data();
}

TEST(ConsumerCost, RowsOfLargeObjectsAreReadOncePerObject) {
  struct Case {
    Shape shape;
    std::uint64_t gets;
  };
  // A pack comes with one request, all its steps together.
  for (const auto& [shape, gets] : {Case{{.ranks = 128, .steps_per_object = 1}, 4},
                                    Case{{.ranks = 129, .steps_per_object = 1}, 4 + 4},
                                    Case{{.ranks = 64, .steps_per_object = 2}, 4},
                                    Case{{.ranks = 65, .steps_per_object = 2}, 4 + 4},
                                    Case{{.ranks = 43, .steps_per_object = 3}, 4 + 4}}) {
    SCOPED_TRACE(testing::Message()
                 << shape.ranks << " ranks, packs of " << shape.steps_per_object);
    on_any_schedule([&](ClientWorld& world) { EXPECT_EQ(gets_of_four(world, shape), gets); }, 3);
  }
}

TEST(ConsumerCost, StepByStepTheRowsOfAPackAreReadOnceAndEachStepOnce) {
  // The second object is read without its step 4: rows, step 3 and step 5.
  for (const auto& [ranks, gets] : {std::pair{42U, 3U + 2U}, std::pair{43U, 3U + 2U + 4U}}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Shape shape{.ranks = ranks, .steps_per_object = 3};
    on_any_schedule([&](ClientWorld& world) { EXPECT_EQ(gets_of_four(world, shape, 4), gets); }, 3);
  }
}

}  // namespace
}  // namespace batchloom::client
