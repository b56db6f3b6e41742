// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/removal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::IsEmpty;
using testing::SizeIs;

class Removing : public TrimTest {
 protected:
  /// Objects that stand there, as removals of all kinds in turn.
  std::vector<Removal> put_objects(std::size_t count) {
    std::vector<Removal> removals;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string key = fmt::format("x/{:05}", i);
      put(key, to_bytes("x"));
      removals.push_back({.kind = static_cast<RemovalKind>(i % 5), .key = key, .reason = "a test"});
    }
    return removals;
  }
  ReclaimReport report_;
};

TEST_F(Removing, GoesManyAtATime) {
  const auto removals = put_objects(2500);
  const ReclaimOptions options;
  Remover remover(*stream_, options, report_);
  for (const Removal& removal : removals) ASSERT_TRUE(remover.add(removal, {}).is_ok());
  EXPECT_EQ(objects_.count(Operation::kRemove), 2u);
  EXPECT_THAT(keys("x/"), SizeIs(500));
  ASSERT_TRUE(remover.flush({}).is_ok());
  EXPECT_EQ(objects_.count(Operation::kRemove), 3u);
  EXPECT_THAT(keys("x/"), IsEmpty());
  ASSERT_TRUE(remover.flush({}).is_ok());
  EXPECT_EQ(objects_.count(Operation::kRemove), 3u) << "nothing is left to ask for";
  for (const RemovalKind kind : {RemovalKind::kSlot, RemovalKind::kSegment, RemovalKind::kBatch,
                                 RemovalKind::kState, RemovalKind::kMembership}) {
    EXPECT_EQ(report_.removed(kind), 500u) << to_string(kind);
  }
  EXPECT_EQ(report_.removed(), 2500u);
  EXPECT_EQ(report_.batches_removed, 500u);
  EXPECT_EQ(counted("store_reclaimed_batches"), 500u);
  EXPECT_EQ(counted("store_reclaimed_memberships"), 500u);
}

TEST_F(Removing, CountsWhatIsSurelyGone) {
  const auto removals = put_objects(4);
  std::vector<std::string> told;
  const ReclaimOptions options{
      .on_removal = [&](const Removal& removal) { told.push_back(removal.key); }};
  Remover remover(*stream_, options, report_);
  for (const Removal& removal : removals) ASSERT_TRUE(remover.add(removal, {}).is_ok());
  EXPECT_THAT(told, IsEmpty());
  objects_.next({.operation = Operation::kRemove, .answer = Answer::kDamaged});
  ASSERT_TRUE(remover.flush({}).is_ok());
  EXPECT_THAT(told, testing::ElementsAre("x/00001", "x/00002", "x/00003"));
  EXPECT_EQ(report_.slots_removed, 0u);
  EXPECT_EQ(report_.failed, 1u);
  EXPECT_EQ(report_.first_failure.message(), "removing x/00000: scripted");
}

TEST_F(Removing, AnErrorOfTheStoreEndsIt) {
  const auto removals = put_objects(4);
  const ReclaimOptions options;
  Remover remover(*stream_, options, report_);
  for (const Removal& removal : removals) ASSERT_TRUE(remover.add(removal, {}).is_ok());
  objects_.next({.operation = Operation::kRemove, .answer = Answer::kForbidden});
  EXPECT_TRUE(remover.flush({}).is(ErrorKind::kInvalid));
  EXPECT_EQ(report_.slots_removed + report_.failed, 0u);
}

TEST_F(Removing, ADryRunOnlyTells) {
  const auto removals = put_objects(4);
  std::size_t told = 0;
  const ReclaimOptions options{.dry_run = true, .on_removal = [&](const Removal&) { ++told; }};
  Remover remover(*stream_, options, report_);
  for (const Removal& removal : removals) ASSERT_TRUE(remover.add(removal, {}).is_ok());
  EXPECT_EQ(told, 4u);
  ASSERT_TRUE(remover.flush({}).is_ok());
  EXPECT_EQ(objects_.count(Operation::kRemove), 0u);
  EXPECT_EQ(report_.states_removed, 1u);
  EXPECT_EQ(counted("store_reclaimed_states"), 0u);
}

}  // namespace
}  // namespace batchloom::store
