// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/client_world_testing.h"

#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/sim_runtime.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/run_table.h"
#include "batchloom/store/trim.h"

namespace batchloom::client {

using store::Entry;
using store::Head;

namespace {

std::unique_ptr<store::Stream> open_stream(const store::StreamDeps& deps) {
  return must(store::Stream::open(deps, {}, {}));
}

}  // namespace

ClientWorld::ClientWorld(Runtime& runtime, View view)
    : runtime_(runtime), memory_(runtime), metered_(memory_, counters_), objects_(metered_) {
  const store::StreamDeps others{runtime_, memory_, other_counters_};
  static_cast<void>(must(store::init_stream(others, "test", {})));
  other_ = open_stream(others);
  objstore::ObjectStore& seen =
      view == View::kScripted ? static_cast<objstore::ObjectStore&>(objects_) : metered_;
  stream_ = open_stream({runtime_, seen, counters_});
  feed_ = std::make_unique<HeadFeed>(*stream_);
  producer_ = std::make_unique<TestProducer>(*other_);
  objects_.forget_requests();
}

void ClientWorld::pass(Duration time) {
  // In slices: simulated time may jump ahead of threads that could go on, but not each time.
  constexpr int kSlices = 64;
  const Time end = runtime_.now() + time;
  for (int left = kSlices; left > 0; --left) {
    const Time now = runtime_.now();
    const Status slept =
        runtime_.sleep_until({.deadline = left == 1 ? end : now + (end - now) / left});
    EXPECT_TRUE(slept.is_ok()) << slept.to_string();
  }
}

std::unique_ptr<Task> ClientWorld::start(std::string name,
                                         std::function<void(std::stop_token)> body) {
  const std::shared_ptr<Event> began = runtime_.make_event();
  auto task =
      runtime_.spawn(std::move(name), [began, run = std::move(body)](const std::stop_token& stop) {
        began->set();
        run(stop);
      });
  EXPECT_TRUE(began->wait({}).is_ok());
  return task;
}

store::HeadPtr ClientWorld::newest() const {
  return must(store::ManifestReader(*other_).latest({}));
}

Entry ClientWorld::entry_of(Step step) const {
  store::SegmentReader segments(*other_);
  return must(segments.find(newest()->head, step, {}));
}

void ClientWorld::damage(Step step, model::HdpRank rank) {
  const Entry entry = entry_of(step);
  const std::string key = store::data_key(entry.object());
  const std::size_t rows_bytes = store::rank_rows_bytes(entry.steps);
  const std::vector<store::RunRow> rows = must(store::decode_rank_rows(
      {.key = key,
       .identity = {other_->uuid(), entry.producer, entry.term, entry.seq},
       .steps = entry.steps,
       .ranks = entry.ranks,
       .size_bytes = entry.size_bytes},
      rank, ByteSpan(entry.run_table).subspan(rank.value * rows_bytes, rows_bytes)));
  const store::RunRow& row = rows.at(step - entry.first_step);
  Bytes bytes = must(memory_.get(key, {}, {}))->bytes;
  bytes.at(row.offset_bytes + row.size_bytes / 2) ^= std::byte{16};
  static_cast<void>(
      must(objstore::put_bytes(memory_, key, bytes, objstore::PutCondition::none(), {})));
}

void ClientWorld::trim(Step first_step) {
  std::vector<std::string> gone;
  for (Step step = newest()->head.first_step; step < first_step;) {
    const Entry entry = entry_of(step);
    step = entry.end_step();
    if (step <= first_step) gone.push_back(store::data_key(entry.object()));
  }
  store::ManifestReader reader(*other_);
  const auto edit = [&](const store::HeadEdit& what) {
    EXPECT_TRUE(must(store::commit_edit(*other_, reader, what, {})).committed);
  };
  edit([&](const Head& head) {
    return std::optional(store::propose_trim_intent(head, first_step));
  });
  edit([&](const Head& head) {
    return std::optional(store::complete_trim(head, first_step, other_->safeguards()));
  });
  if (!gone.empty()) static_cast<void>(must(memory_.remove(gone, {})));
}

void ClientWorld::remove_object(Step step) {
  static_cast<void>(
      must(memory_.remove(std::vector{store::data_key(entry_of(step).object())}, {})));
}

void on_any_schedule(const std::function<void(ClientWorld&)>& body, std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimWorld world(seed);
    SimProcess& process = world.add_process("trainer");
    process.start("main", [&] {
      ClientWorld client(process);
      client.objects().before_each([&process](std::size_t) {
        static_cast<void>(process.sleep_until({.deadline = process.now() + Duration(1)}));
      });
      body(client);
    });
    const Status ended = world.run();
    ASSERT_TRUE(ended.is_ok()) << ended.to_string();
  }
}

testing::AssertionResult is_error(const Status& status, ErrorKind kind,
                                  const std::vector<std::string>& parts) {
  if (!status.is(kind)) return testing::AssertionFailure() << status.to_string();
  for (const std::string& part : parts) {
    if (status.message().find(part) != std::string_view::npos) continue;
    return testing::AssertionFailure() << "no '" << part << "' in: " << status.to_string();
  }
  return testing::AssertionSuccess();
}

}  // namespace batchloom::client
