// SPDX-License-Identifier: Apache-2.0
// LocalStore on the fake disk and on the real one. The protocol itself:
// local_protocol_test.cc; faults and power cuts: local_crash_test.cc.
#include "batchloom/objstore/local_store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <tuple>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/metered_store.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/objstore/retrying_store.h"

namespace batchloom::objstore {
namespace {

enum class Disk { kFake, kRealUnnamed, kRealNamed };

class LocalStoreOn : public testing::TestWithParam<Disk> {
 protected:
  LocalStoreOn() {
    if (GetParam() == Disk::kFake) {
      files_ = std::make_unique<PowerCutFileOps>();
      root_ = "/store";
    } else {
      files_ = make_posix_file_ops({.unnamed_temp_files = GetParam() == Disk::kRealUnnamed});
      root_ = scratch_.path() + "/store";
    }
    store_ = LocalStore::create({.root = root_}, *files_, runtime_).value();
  }

  /// `error` says that `what` has the key's name: key, byte, path and what stands there.
  void expect_no_object(const Status& error, const std::string& key, std::string_view what) {
    EXPECT_TRUE(error.is(ErrorKind::kCorruption)) << error.to_string();
    EXPECT_EQ(error.message().find(key + ": at byte 0: "), 0U) << error.to_string();
    EXPECT_TRUE(says(error, root_ + "/" + key)) << error.to_string();
    EXPECT_TRUE(says(error, what)) << error.to_string();
  }

  ScratchFolder scratch_;
  std::unique_ptr<FileOps> files_;
  std::string root_;
  ManualRuntime runtime_;
  std::unique_ptr<LocalStore> store_;
};

TEST_P(LocalStoreOn, PutsGetsAndRemoves) {
  EXPECT_EQ(get_text(*store_, "d/7f/a-1.tgb").value(), std::nullopt);
  EXPECT_EQ(store_->head("d/7f/a-1.tgb", {}).value().has_value(), false);
  EXPECT_EQ(outcome(put_text(*store_, "d/7f/a-1.tgb", "one")), PutOutcome::kApplied);
  EXPECT_EQ(get_text(*store_, "d/7f/a-1.tgb").value(), "one");
  EXPECT_EQ(store_->head("d/7f/a-1.tgb", {}).value()->size_bytes, 3u);
  EXPECT_EQ(outcome(put_text(*store_, "d/7f/a-1.tgb", "")), PutOutcome::kApplied);
  EXPECT_EQ(get_text(*store_, "d/7f/a-1.tgb").value(), "");
  EXPECT_TRUE(remove_key(*store_, "d/7f/a-1.tgb").is_ok());
  EXPECT_EQ(get_text(*store_, "d/7f/a-1.tgb").value(), std::nullopt);
  EXPECT_TRUE(remove_key(*store_, "d/7f/a-1.tgb").is_ok()) << "a missing key counts as removed";
  EXPECT_TRUE(remove_key(*store_, "no/such/folder").is_ok());
}

TEST_P(LocalStoreOn, ConcatenatesParts) {
  const std::vector<ByteSpan> parts = {as_bytes("ab"), {}, as_bytes("cde")};
  const auto reply = store_->put("key", parts, PutCondition::absent(), {});
  ASSERT_EQ(outcome(reply), PutOutcome::kApplied);
  const auto data = store_->get("key", {}, {}).value();
  EXPECT_EQ(as_text(data->bytes), "abcde");
  EXPECT_EQ(data->etag, reply->etag);
}

TEST_P(LocalStoreOn, ReadsRanges) {
  ASSERT_EQ(outcome(put_text(*store_, "key", "0123456789")), PutOutcome::kApplied);
  const auto range = [&](ByteRange wanted) { return store_->get("key", wanted, {}); };
  EXPECT_EQ(as_text(range({2, 3}).value()->bytes), "234");
  EXPECT_EQ(range({2, 3}).value()->object_size_bytes, 10u);
  EXPECT_EQ(as_text(range({8, 100}).value()->bytes), "89");
  EXPECT_EQ(as_text(range({8, UINT64_MAX}).value()->bytes), "89");
  EXPECT_EQ(as_text(range({10, 1}).value()->bytes), "");
  EXPECT_TRUE(range({11, 0}).is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(range({11, 0}).status(), "'key'"));
}

TEST_P(LocalStoreOn, ReadsIntoTheMemoryOfItsCaller) {
  ASSERT_EQ(outcome(put_text(*store_, "key", "0123456789")), PutOutcome::kApplied);
  const auto runtime = make_real_runtime();
  Counters counters;
  MeteredStore metered(*store_, counters);
  RetryingStore retrying(metered, *runtime, counters);
  Bytes storage(64);
  const std::byte* const memory = storage.data();
  const auto data = retrying.get_into(std::move(storage), "key", {2, 3}, {}).value();
  EXPECT_EQ(as_text(data->bytes), "234");
  EXPECT_EQ(data->bytes.data(), memory);
  EXPECT_EQ(counters.snapshot()["objstore_get_calls"], 1U);
  EXPECT_EQ(counters.snapshot()["objstore_get_bytes"], 3U);
}

TEST_P(LocalStoreOn, CreatesOnlyOnce) {
  EXPECT_EQ(outcome(put_text(*store_, "m/1", "a", PutCondition::absent())), PutOutcome::kApplied);
  EXPECT_EQ(outcome(put_text(*store_, "m/1", "b", PutCondition::absent())),
            PutOutcome::kConditionFailed);
  EXPECT_EQ(get_text(*store_, "m/1").value(), "a");
}

TEST_P(LocalStoreOn, ReplacesOnlyWhatMatches) {
  const auto first = put_text(*store_, "gc/floor", "1");
  const auto matches = [&](std::optional<Etag> etag) { return PutCondition::matches(*etag); };
  EXPECT_EQ(outcome(put_text(*store_, "gc/none", "2", matches(first->etag))),
            PutOutcome::kConditionFailed);
  EXPECT_EQ(get_text(*store_, "gc/none").value(), std::nullopt);
  const auto second = put_text(*store_, "gc/floor", "2", matches(first->etag));
  EXPECT_EQ(outcome(second), PutOutcome::kApplied);
  EXPECT_EQ(outcome(put_text(*store_, "gc/floor", "3", matches(first->etag))),
            PutOutcome::kConditionFailed);
  EXPECT_EQ(get_text(*store_, "gc/floor").value(), "2");
  EXPECT_EQ(store_->get("gc/floor", {}, {}).value()->etag, second->etag);
}

TEST_P(LocalStoreOn, RefusesAKeyThatIsAFolder) {
  ASSERT_EQ(outcome(put_text(*store_, "a/b", "x")), PutOutcome::kApplied);
  const Etag etag{"any"};
  for (const PutCondition& condition :
       {PutCondition::none(), PutCondition::absent(), PutCondition::matches(etag)}) {
    expect_no_object(put_text(*store_, "a", "x", condition).status(), "a", "a folder");
  }
  expect_no_object(store_->get("a", {}, {}).status(), "a", "a folder");
  expect_no_object(store_->head("a", {}).status(), "a", "a folder");
  expect_no_object(remove_key(*store_, "a"), "a", "a folder");
  EXPECT_EQ(get_text(*store_, "a/b").value(), "x");
}

TEST_P(LocalStoreOn, RefusesAKeyBelowAnObject) {
  ASSERT_EQ(outcome(put_text(*store_, "a", "x")), PutOutcome::kApplied);
  for (const std::string key : {"a/b", "a/b/c"}) {
    const Status put = put_text(*store_, key, "y").status();
    EXPECT_TRUE(put.is(ErrorKind::kInvalid)) << put.to_string();
    EXPECT_TRUE(says(put, "cannot be a folder")) << put.to_string();
    EXPECT_EQ(get_text(*store_, key).value(), std::nullopt);
    EXPECT_TRUE(store_->head(key, {}).value() == std::nullopt);
    EXPECT_TRUE(remove_key(*store_, key).is_ok());
  }
  ASSERT_TRUE(remove_key(*store_, "a").is_ok());
  EXPECT_EQ(outcome(put_text(*store_, "a/b", "y")), PutOutcome::kApplied);
}

TEST_P(LocalStoreOn, RefusesBadKeys) {
  for (const std::string key : {"", "/a", "a/", ".tmp/x", "../x", "a/../b", "a b"}) {
    EXPECT_TRUE(store_->get(key, {}, {}).is(ErrorKind::kInvalid)) << key;
    EXPECT_TRUE(store_->head(key, {}).is(ErrorKind::kInvalid)) << key;
    EXPECT_TRUE(put_text(*store_, key, "x").is(ErrorKind::kInvalid)) << key;
    EXPECT_TRUE(store_->remove(std::span(&key, 1), {}).is(ErrorKind::kInvalid)) << key;
  }
  ASSERT_EQ(outcome(put_text(*store_, "good", "x")), PutOutcome::kApplied);
  const std::vector<std::string> keys = {"good", "../bad"};
  EXPECT_TRUE(store_->remove(keys, {}).is(ErrorKind::kInvalid));
  EXPECT_EQ(get_text(*store_, "good").value(), "x") << "nothing is removed of a bad list";
}

TEST_P(LocalStoreOn, RemovesManyAndAnswersInOrder) {
  for (const std::string key : {"d/00/a", "d/01/a", "d/00/b"}) {
    ASSERT_EQ(outcome(put_text(*store_, key, "x")), PutOutcome::kApplied);
  }
  const std::vector<std::string> keys = {"d/01/a", "d", "d/00/a", "none", "d/00/b"};
  const auto replies = store_->remove(keys, {}).value();
  ASSERT_EQ(replies.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(!replies[i].is_ok(), keys[i] == "d") << keys[i];
  }
  EXPECT_TRUE(list_all(*store_).value().empty());
}

TEST_P(LocalStoreOn, HonoursDeadlineAndStop) {
  ASSERT_EQ(outcome(put_text(*store_, "a", "x")), PutOutcome::kApplied);
  std::stop_source stop;
  stop.request_stop();
  const CallOptions late{.deadline = runtime_.now()};
  const CallOptions stopped{.stop = stop.get_token()};
  const std::string key = "a";
  for (const auto& [call, kind] :
       {std::pair(late, ErrorKind::kUnavailable), std::pair(stopped, ErrorKind::kCancelled)}) {
    EXPECT_TRUE(store_->get(key, {}, call).is(kind));
    EXPECT_TRUE(store_->head(key, call).is(kind));
    EXPECT_TRUE(put_bytes(*store_, key, {}, PutCondition::none(), call).is(kind));
    EXPECT_TRUE(store_->list("", "", call).is(kind));
    EXPECT_TRUE(store_->remove(std::span(&key, 1), call).is(kind));
    EXPECT_TRUE(store_->prepare_folders(std::span(&key, 1), call).is(kind));
    EXPECT_TRUE(LocalStore::open({.root = root_}, *files_, runtime_, call).is(kind));
    EXPECT_TRUE(LocalStore::create({.root = root_}, *files_, runtime_, call).is(kind));
  }
  EXPECT_EQ(get_text(*store_, "a").value(), "x");
}

TEST_P(LocalStoreOn, OpensOnlyWhatExists) {
  const auto open = [&](const std::string& root) {
    return LocalStore::open({.root = root}, *files_, runtime_).status();
  };
  EXPECT_TRUE(open(root_ + "/").is_ok());
  const Status missing = open(root_ + "x");
  EXPECT_TRUE(missing.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(missing, root_ + "x")) << missing.to_string();
  EXPECT_TRUE(open("").is(ErrorKind::kNotFound) || GetParam() == Disk::kFake);
  const auto create = [&](const std::string& root) {
    return LocalStore::create({.root = root}, *files_, runtime_).status();
  };
  EXPECT_TRUE(create(root_).is_ok()) << "an existing folder is fine";
  EXPECT_TRUE(create(root_ + "x/y").is(ErrorKind::kNotFound));
  EXPECT_TRUE(create("").is(ErrorKind::kInvalid));
  ASSERT_EQ(outcome(put_text(*store_, "file", "content")), PutOutcome::kApplied);
  for (const Status& refused : {open(root_ + "/file"), create(root_ + "/file")}) {
    EXPECT_TRUE(refused.is(ErrorKind::kInvalid)) << refused.to_string();
    EXPECT_TRUE(says(refused, "it is no folder")) << refused.to_string();
  }
}

TEST(LocalStoreTest, OpensAFolderThatIsMadeMeanwhile) {
  PowerCutFileOps files;
  ManualRuntime runtime;
  files.faults().before_call([&](FileCall call, const std::string&) {
    if (call == FileCall::kFileSize) std::ignore = files.make_folder("/store");
  });
  const auto opened = LocalStore::open({.root = "/store"}, files, runtime);
  EXPECT_TRUE(opened.is_ok()) << opened.status().to_string();
}

TEST_P(LocalStoreOn, SharesOneFolderBetweenInstances) {
  const auto other = LocalStore::open({.root = root_}, *files_, runtime_).value();
  ASSERT_EQ(outcome(put_text(*store_, "m/1", "x", PutCondition::absent())), PutOutcome::kApplied);
  EXPECT_EQ(get_text(*other, "m/1").value(), "x");
  EXPECT_EQ(outcome(put_text(*other, "m/1", "y", PutCondition::absent())),
            PutOutcome::kConditionFailed);
}

/// The fake disk has files and folders only.
class LocalStoreOnRealDisk : public LocalStoreOn {};

/// What is no plain file, by the words for it; each is made at a path.
struct Stray {
  std::string what;
  std::function<void(const std::string& path)> make;
};

std::vector<Stray> strays(const std::string& folder) {
  std::ofstream(folder + "/elsewhere") << "a sound file";
  const auto link_to = [](const std::string& target) {
    return [target](const std::string& path) { std::filesystem::create_symlink(target, path); };
  };
  const auto listen = [](const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
  };
  return {{"a pipe", [](const std::string& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
          {"a socket", listen},
          {"a link", link_to(folder + "/nothing")},
          {"a link", link_to(folder + "/elsewhere")},
          {"a link", link_to("itself")}};
}

/// Nothing here waits, or the test would not end.
TEST_P(LocalStoreOnRealDisk, AnswersAlikeAboutWhatIsNoPlainFile) {
  ASSERT_EQ(outcome(put_text(*store_, "m/1", "x")), PutOutcome::kApplied);
  const Etag etag = store_->get("m/1", {}, {}).value()->etag.value();
  const std::string key = "m/itself";
  for (const Stray& stray : strays(scratch_.path())) {
    stray.make(root_ + "/" + key);
    expect_no_object(store_->get(key, {}, {}).status(), key, stray.what);
    expect_no_object(store_->head(key, {}).status(), key, stray.what);
    for (const PutCondition& condition : {PutCondition::absent(), PutCondition::matches(etag)}) {
      expect_no_object(put_text(*store_, key, "y", condition).status(), key, stray.what);
    }
    EXPECT_EQ(list_all(*store_).value(),
              (std::map<std::string, std::uint64_t>{{key, 0}, {"m/1", 1}}))
        << "the key is taken";
    EXPECT_TRUE(remove_key(*store_, key).is_ok());
    EXPECT_EQ(store_->head(key, {}).value(), std::nullopt);
    stray.make(root_ + "/" + key);
    EXPECT_EQ(outcome(put_text(*store_, key, "y")), PutOutcome::kApplied);
    EXPECT_EQ(get_text(*store_, key).value(), "y");
    EXPECT_TRUE(remove_key(*store_, key).is_ok());
  }
  std::ifstream elsewhere(scratch_.path() + "/elsewhere");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(elsewhere), {}), "a sound file");
}

TEST_P(LocalStoreOnRealDisk, FoldersMayBeLinksButNothingElse) {
  std::filesystem::create_directory(scratch_.path() + "/other");
  std::filesystem::create_symlink(scratch_.path() + "/other", root_ + "/d");
  EXPECT_EQ(outcome(put_text(*store_, "d/00/x", "y")), PutOutcome::kApplied);
  EXPECT_EQ(get_text(*store_, "d/00/x").value(), "y");
  EXPECT_EQ(list_all(*store_).value().size(), 1U);
  for (const Stray& stray : strays(scratch_.path())) {
    stray.make(root_ + "/itself");
    const Status put = put_text(*store_, "itself/x", "y").status();
    EXPECT_FALSE(put.is_ok() || put.is(ErrorKind::kUnavailable))
        << "never repeated: " << put.to_string();
    EXPECT_TRUE(says(put, root_ + "/itself")) << put.to_string();
    const Status listed = list_all(*store_, {.prefix = "itself/"}).status();
    EXPECT_FALSE(listed.is_ok() || listed.is(ErrorKind::kUnavailable)) << "not as if it were empty";
    EXPECT_TRUE(says(listed, root_ + "/itself")) << listed.to_string();
    ASSERT_TRUE(remove_key(*store_, "itself").is_ok());
  }
}

std::string name_of_disk(const testing::TestParamInfo<Disk>& disk) {
  switch (disk.param) {
    case Disk::kFake: return "Fake";
    case Disk::kRealUnnamed: return "RealUnnamed";
    case Disk::kRealNamed: return "RealNamed";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(EveryDisk, LocalStoreOn,
                         testing::Values(Disk::kFake, Disk::kRealUnnamed, Disk::kRealNamed),
                         name_of_disk);
INSTANTIATE_TEST_SUITE_P(RealDisk, LocalStoreOnRealDisk,
                         testing::Values(Disk::kRealUnnamed, Disk::kRealNamed), name_of_disk);

}  // namespace
}  // namespace batchloom::objstore
