// SPDX-License-Identifier: Apache-2.0
// The steps of the protocol in local_store.h, one by one, on the fake disk.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/power_cut_testing.h"

namespace batchloom::objstore {
namespace {

class LocalStoreOnFake : public testing::Test {
 protected:
  std::unique_ptr<LocalStore> open(FsyncPolicy fsync = FsyncPolicy::kAlways) {
    return LocalStore::create({.root = "/store", .fsync = fsync}, files_, runtime_).value();
  }
  std::uint64_t syncs() {
    return files_.faults().calls(FileCall::kSyncData) +
           files_.faults().calls(FileCall::kSyncFolder);
  }

  PowerCutFileOps files_;
  ManualRuntime runtime_;
};

TEST_F(LocalStoreOnFake, APutSyncsItsBytesAndItsFolder) {
  const auto store = open();
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  const std::uint64_t before = syncs();
  ASSERT_EQ(outcome(put_text(*store, "m/2", "x")), PutOutcome::kApplied);
  EXPECT_EQ(syncs() - before, 2u);
}

TEST_F(LocalStoreOnFake, PolicyNoneNeverSyncs) {
  const auto store = open(FsyncPolicy::kNone);
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x", PutCondition::absent())),
            PutOutcome::kConditionFailed);
  ASSERT_TRUE(remove_key(*store, "m/1").is_ok());
  EXPECT_EQ(syncs(), 0u);
}

TEST_F(LocalStoreOnFake, RemovalsSyncEachFolderOnce) {
  const auto store = open();
  std::vector<std::string> keys;
  for (const std::string folder : {"d/00/", "d/01/"}) {
    for (int i = 0; i < 5; ++i) keys.push_back(folder + std::to_string(i));
  }
  for (const std::string& key : keys)
    ASSERT_EQ(outcome(put_text(*store, key, "x")), PutOutcome::kApplied);
  const std::uint64_t before = syncs();
  ASSERT_TRUE(store->remove(keys, {}).is_ok());
  EXPECT_EQ(syncs() - before, 2u);
}

TEST_F(LocalStoreOnFake, PreparedFoldersAreDurableAndCostLaterPutsNothing) {
  const std::vector<std::string> folders = {"m", "d/00", "d/01"};
  const auto store = open();
  const std::uint64_t before = syncs();
  ASSERT_TRUE(store->prepare_folders(folders, {}).is_ok());
  EXPECT_EQ(syncs() - before, 2u) << "the root, and d";
  ASSERT_EQ(outcome(put_text(*store, "d/01/x", "x")), PutOutcome::kApplied);
  EXPECT_EQ(syncs() - before, 4u);
  EXPECT_TRUE(store->prepare_folders(std::vector<std::string>{"../x"}, {}).is(ErrorKind::kInvalid));
  files_.power_cut(1);
  for (const std::string& folder : folders) {
    EXPECT_NE(files_.open_folder("/store/" + folder).value(), nullptr) << folder;
  }
}

TEST_F(LocalStoreOnFake, DoesNotTrustAFolderThatAnotherMade) {
  // The other one died before it synced the folder's own name.
  ASSERT_TRUE(open() != nullptr);
  ASSERT_TRUE(files_.make_folder("/store/m").value());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string key = "m/" + std::to_string(seed);
    ASSERT_EQ(outcome(put_text(*open(), key, "x")), PutOutcome::kApplied);
    files_.power_cut(seed);
    EXPECT_EQ(get_text(*open(), key).value(), "x");
  }
}

TEST_F(LocalStoreOnFake, WhatAPutLostToSurvivesAPowerCut) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string key = "m/" + std::to_string(seed);
    const auto loser = open();
    const auto winner = open();
    ASSERT_TRUE(loser->prepare_folders(std::vector<std::string>{"m"}, {}).is_ok());
    ASSERT_TRUE(winner->prepare_folders(std::vector<std::string>{"m"}, {}).is_ok());
    bool lost = false;
    files_.faults().before_call([&](FileCall call, const std::string&) {
      if (call != FileCall::kSyncFolder || lost) return;
      lost = true;
      EXPECT_EQ(outcome(put_text(*loser, key, "b", PutCondition::absent())),
                PutOutcome::kConditionFailed);
      files_.power_cut(seed);
    });
    EXPECT_EQ(outcome(put_text(*winner, key, "a", PutCondition::absent())), PutOutcome::kUnknown);
    files_.faults().before_call({});
    EXPECT_TRUE(lost);
    EXPECT_EQ(get_text(*open(), key).value(), "a");
  }
}

// What a removal or a replacement rests on: another's put, named and not yet durable.
TEST_F(LocalStoreOnFake, NothingIsRemovedOnTheWordOfWhatMayVanish) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string head = "m/" + std::to_string(seed);
    const auto writer = open();
    const auto reclaimer = open();
    ASSERT_EQ(outcome(put_text(*writer, "d/old", "x")), PutOutcome::kApplied);
    const auto floor = put_text(*writer, "gc/floor", "0");
    ASSERT_EQ(outcome(floor), PutOutcome::kApplied);
    ASSERT_TRUE(writer->prepare_folders(std::vector<std::string>{"m"}, {}).is_ok());
    bool acted = false;
    files_.faults().before_call([&](FileCall call, const std::string&) {
      if (call != FileCall::kSyncFolder || acted) return;
      acted = true;
      EXPECT_EQ(get_text(*reclaimer, head).value(), "new");
      if (seed % 2 == 0) {
        EXPECT_TRUE(remove_key(*reclaimer, "d/old").is_ok());
      } else {
        const PutCondition unchanged = PutCondition::matches(*floor->etag);
        EXPECT_EQ(outcome(put_text(*reclaimer, "gc/floor", "1", unchanged)), PutOutcome::kApplied);
      }
      files_.power_cut(seed);
    });
    EXPECT_EQ(outcome(put_text(*writer, head, "new", PutCondition::absent())),
              PutOutcome::kUnknown);
    files_.faults().before_call({});
    ASSERT_TRUE(acted);
    EXPECT_EQ(get_text(*open(), head).value(), "new") << seed;
    ASSERT_EQ(outcome(put_text(*open(), "gc/floor", "0")), PutOutcome::kApplied);
  }
}

TEST_F(LocalStoreOnFake, AnInstanceInDoubtRefusesEveryCall) {
  const auto store = open();
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  const auto listing = store->list("", "", {}).value();
  files_.faults().fail_every(FileCall::kSyncFolder, {.error = EIO});
  const auto unknown = put_text(*store, "m/2", "x");
  ASSERT_EQ(outcome(unknown), PutOutcome::kUnknown);
  EXPECT_NE(unknown->detail.find("/store/m"), std::string::npos) << unknown->detail;
  files_.faults().clear();
  const std::uint64_t calls = files_.faults().calls();
  const std::string key = "m/1";
  for (const Status& status :
       {store->get(key, {}, {}).status(), store->head(key, {}).status(),
        put_text(*store, key, "x").status(), store->list("", "", {}).status(),
        listing->next_page({}).status(), store->remove(std::span(&key, 1), {}).status(),
        store->prepare_folders(std::span(&key, 1), {})}) {
    EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << status.to_string();
    EXPECT_TRUE(says(status, "open the store again")) << status.to_string();
    EXPECT_TRUE(says(status, "EIO")) << status.to_string();
  }
  EXPECT_EQ(files_.faults().calls(), calls) << "nothing is tried, a failed sync least of all";
  EXPECT_EQ(get_text(*open(), "m/1").value(), "x");
}

TEST_F(LocalStoreOnFake, AFailedRemovalSyncIsAnErrorAndEndsTheInstance) {
  const auto store = open();
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  files_.faults().fail_every(FileCall::kSyncFolder, {.error = EIO});
  const std::string key = "m/1";
  EXPECT_TRUE(store->remove(std::span(&key, 1), {}).is(ErrorKind::kCorruption));
  files_.faults().clear();
  EXPECT_TRUE(store->get(key, {}, {}).is(ErrorKind::kCorruption));
}

TEST_F(LocalStoreOnFake, AnErrorBeforeTheNameIsNoDoubt) {
  const auto store = open();
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  for (const FileCall call : {FileCall::kOpenTemp, FileCall::kWrite, FileCall::kSyncData}) {
    files_.faults().fail_every(call, {.error = EIO});
    EXPECT_TRUE(put_text(*store, "m/2", "x").is(ErrorKind::kUnavailable));
    files_.faults().clear();
    EXPECT_EQ(get_text(*store, "m/2").value(), std::nullopt);
  }
  files_.faults().fail_every(FileCall::kLink, {.error = ENOSPC});
  EXPECT_TRUE(put_text(*store, "m/2", "x", PutCondition::absent()).is(ErrorKind::kExhausted));
  files_.faults().clear();
  EXPECT_EQ(get_text(*store, "m/2").value(), std::nullopt);
}

TEST_F(LocalStoreOnFake, ADeadlineThatPassesWhileWritingLeavesNothing) {
  const auto store = open();
  for (const auto& condition : {PutCondition::absent(), PutCondition::none()}) {
    const CallOptions call{.deadline = runtime_.now() + std::chrono::seconds(1)};
    files_.faults().before_call([&](FileCall kind, const std::string&) {
      if (kind != FileCall::kSyncData) return;
      EXPECT_TRUE(runtime_.sleep_until(call).is_ok());
    });
    EXPECT_TRUE(
        put_bytes(*store, "m/1", as_bytes("x"), condition, call).is(ErrorKind::kUnavailable));
    EXPECT_EQ(get_text(*store, "m/1").value(), std::nullopt);
  }
}

TEST_F(LocalStoreOnFake, PermissionDeniedIsInvalidAndNamesThePath) {
  const auto store = open();
  files_.faults().fail_every(FileCall::kOpenRead, {.error = EACCES});
  const Status denied = store->get("m/1", {}, {}).status();
  EXPECT_TRUE(denied.is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(denied, "/store/m/1")) << denied.to_string();
  EXPECT_TRUE(says(denied, "EACCES")) << denied.to_string();
}

TEST_F(LocalStoreOnFake, SweepsWhatDeadWritersLeft) {
  const auto store = open();
  ASSERT_EQ(outcome(put_text(*store, "m/1", "x")), PutOutcome::kApplied);
  const auto dead = files_.open_temp("/store/.tmp").value();
  ASSERT_TRUE(files_.open_folder("/store/.tmp").value()->sync().is_ok());
  ASSERT_TRUE(files_.open_folder("/store").value()->sync().is_ok());
  files_.power_cut(1);
  const auto alive = files_.open_temp("/store/.tmp").value();
  ASSERT_NE(open(), nullptr);
  const auto folder = files_.open_folder("/store/.tmp").value();
  EXPECT_TRUE(folder->next().value().has_value()) << "the living one";
  EXPECT_FALSE(folder->next().value().has_value()) << "the dead one";
}

TEST_F(LocalStoreOnFake, OpensWhereItMayNotSweep) {
  ASSERT_EQ(outcome(put_text(*open(), "m/1", "x")), PutOutcome::kApplied);
  ASSERT_TRUE(files_.open_folder("/store").value()->sync().is_ok());
  const auto dead = files_.open_temp("/store/.tmp").value();
  files_.faults().fail_every(FileCall::kSweepTemp, {.error = EROFS});
  EXPECT_EQ(get_text(*open(), "m/1").value(), "x");
}

// Between a comparison and its rename nobody may change the key: another store acts right there.
class LocalStoreRace : public LocalStoreOnFake {
 protected:
  /// Runs `act` on a second store, with a deadline, just before the first one renames.
  void race(const std::function<void(LocalStore& other, const CallOptions& call)>& act) {
    const auto store = open();
    const auto other = open();
    const auto before = put_text(*store, "pin/g/live", "1");
    bool acted = false;
    files_.faults().before_call([&](FileCall call, const std::string&) {
      if (call != FileCall::kReplace || acted) return;
      acted = true;
      act(*other, {.deadline = runtime_.now() + std::chrono::milliseconds(10)});
    });
    const auto reply =
        put_text(*store, "pin/g/live", "2", PutCondition::matches(before->etag.value()));
    EXPECT_TRUE(acted);
    EXPECT_EQ(outcome(reply), PutOutcome::kApplied);
    EXPECT_EQ(get_text(*store, "pin/g/live").value(), "2");
  }
};

TEST_F(LocalStoreRace, APutWaits) {
  race([](LocalStore& other, const CallOptions& call) {
    const auto reply =
        put_bytes(other, "pin/g/live", as_bytes("other"), PutCondition::none(), call);
    EXPECT_TRUE(reply.is(ErrorKind::kUnavailable)) << "at its deadline, surely not applied";
  });
}

TEST_F(LocalStoreRace, AnotherComparisonWaits) {
  race([](LocalStore& other, const CallOptions& call) {
    const Etag etag = *other.get("pin/g/live", {}, {}).value()->etag;
    const auto reply =
        put_bytes(other, "pin/g/live", as_bytes("other"), PutCondition::matches(etag), call);
    EXPECT_TRUE(reply.is(ErrorKind::kUnavailable)) << "at its deadline, surely not applied";
  });
}

TEST_F(LocalStoreRace, ARemovalWaits) {
  race([](LocalStore& other, const CallOptions& call) {
    const std::string key = "pin/g/live";
    EXPECT_TRUE(other.remove(std::span(&key, 1), call).is(ErrorKind::kUnavailable));
  });
}

}  // namespace
}  // namespace batchloom::objstore
