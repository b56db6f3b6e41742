// SPDX-License-Identifier: Apache-2.0
// The conformance suite on LocalStore, whose creators also race as processes.
#include <gtest/gtest.h>

#include "batchloom/objstore/conformance_testing.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/objstore/wrong_stores_testing.h"

namespace batchloom::objstore {
namespace {

class LocalBackend final : public TestBackend {
 public:
  LocalBackend(Runtime& runtime, FsyncPolicy fsync, const PosixFileOptions& files)
      : options_{.root = folder_.path() + "/store", .fsync = fsync},
        files_(make_posix_file_ops(files)),
        store_(LocalStore::create(options_, *files_, runtime).value()) {}

  ObjectStore& store() override { return *store_; }
  std::unique_ptr<ObjectStore> open_in_child(Runtime& runtime) override {
    auto opened = LocalStore::open(options_, *files_, runtime);
    return opened.is_ok() ? std::move(opened).value() : nullptr;
  }

 private:
  ScratchFolder folder_;
  LocalStoreOptions options_;
  std::unique_ptr<FileOps> files_;
  std::unique_ptr<LocalStore> store_;
};

/// In its children it ignores conditions.
class WrongInChildren final : public TestBackend {
 public:
  explicit WrongInChildren(Runtime& runtime) : right_(runtime, FsyncPolicy::kNone, {}) {}

  ObjectStore& store() override { return right_.store(); }
  std::unique_ptr<ObjectStore> open_in_child(Runtime& runtime) override {
    opened_ = right_.open_in_child(runtime);
    return make_wrong_store(Defect::kIgnoresConditions, *opened_, runtime);
  }

 private:
  LocalBackend right_;
  std::unique_ptr<ObjectStore> opened_;
};

TEST(ProcessRaces, CatchAWrongStore) {
  const BackendFactory factory{
      .make = [](Runtime& runtime) { return std::make_unique<WrongInChildren>(runtime); },
      .shared_by_processes = true};
  int failed = 0;
  for (const ConformanceCheck& check : conformance_checks(factory)) {
    if (!check.name.starts_with("racing_processes")) continue;
    EXPECT_TRUE(run_conformance_check(factory, check)) << check.name;
    ++failed;
  }
  EXPECT_EQ(failed, 2);
}

/// Syncing makes puts slow, so only the store without crosses a real page (of 1,000 keys).
BackendFactory local(FsyncPolicy fsync, const PosixFileOptions& files = {}) {
  return {
      .make =
          [=](Runtime& runtime) { return std::make_unique<LocalBackend>(runtime, fsync, files); },
      .shared_by_processes = true,
      .page_keys = fsync == FsyncPolicy::kAlways ? 50U : 1000U};
}

INSTANTIATE_TEST_SUITE_P(LocalDurable, StoreConformance,
                         testing::ValuesIn(conformance_cases(local(FsyncPolicy::kAlways))),
                         conformance_name);
INSTANTIATE_TEST_SUITE_P(LocalNamedTempFiles, StoreConformance,
                         testing::ValuesIn(conformance_cases(local(FsyncPolicy::kNone,
                                                                   {.unnamed_temp_files = false}))),
                         conformance_name);

}  // namespace
}  // namespace batchloom::objstore
