// SPDX-License-Identifier: Apache-2.0
// A reclaimer beside a writer on one disk: what a power cut can still undo is no ground to delete
// on.
#include <gtest/gtest.h>

#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::FileCall;
using objstore::LocalStore;

/// A process on the machine.
class Process {
 public:
  Process(objstore::FileOps& files, Runtime& runtime, const Limits& limits)
      : objects_(LocalStore::create({.root = "/store"}, files, runtime).value()) {
    const StreamDeps deps{runtime, *objects_, counters_};
    EXPECT_TRUE(init_stream(deps, "test", {}).is_ok());
    stream_ = Stream::open(deps, {.limits = limits, .safeguards = {}}, {}).value();
  }
  const Stream& stream() const { return *stream_; }

 private:
  Counters counters_;
  std::unique_ptr<LocalStore> objects_;
  std::unique_ptr<Stream> stream_;
};

/// Runs `act` in the moment in which a writer has named a file in `folder` and not synced it yet,
/// and then cuts the power.
void act_before_sync(objstore::PowerCutFileOps& files, const std::string& folder,
                     std::uint64_t seed, const std::function<void()>& act) {
  files.faults().before_call([&files, folder, seed, act](FileCall call, const std::string& path) {
    if (call != FileCall::kSyncFolder || path != folder) return;
    files.faults().before_call({});
    act();
    files.power_cut(seed);
  });
}

TEST(LocalReclaim, AnUnsyncedHeadRemovesNoState) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    objstore::PowerCutFileOps files;
    SeededRuntime runtime;
    {
      const Process writer(files, runtime, tiny_limits());
      const Process other(files, runtime, tiny_limits());
      const auto session = open_session(writer.stream(), "p");
      const auto commit = [&](Seq seq, const CallOptions& call) {
        return session->commit(std::array{upload_batch(*session, seq, "a large state")}, call);
      };
      ASSERT_TRUE(commit(Seq(0), {}).is_ok());
      act_before_sync(files, "/store/m", seed,
                      [&] { static_cast<void>(Reclaimer(other.stream()).run({})); });
      EXPECT_FALSE(commit(Seq(1), runtime.within(std::chrono::milliseconds(100))).is_ok());
    }
    const Process after(files, runtime, tiny_limits());
    const auto content = read_whole_stream(after.stream());
    EXPECT_TRUE(content.is_ok()) << content.status().to_string();
  }
}

TEST(LocalReclaim, AnUnsyncedFloorRemovesNoSlots) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    objstore::PowerCutFileOps files;
    SeededRuntime runtime;
    {
      const Process first(files, runtime, tiny_limits());
      const Process second(files, runtime, tiny_limits());
      append_slots(first.stream(), 9);
      act_before_sync(files, "/store/gc", seed,
                      [&] { static_cast<void>(Reclaimer(second.stream()).run({})); });
      const CallOptions soon = runtime.within(std::chrono::milliseconds(100));
      EXPECT_FALSE(Reclaimer(first.stream()).run(soon).is_ok());
    }
    const Process after(files, runtime, tiny_limits());
    const auto content = read_whole_stream(after.stream());
    EXPECT_TRUE(content.is_ok()) << content.status().to_string();
  }
}

}  // namespace
}  // namespace batchloom::store
