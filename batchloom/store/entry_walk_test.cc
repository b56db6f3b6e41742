// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/entry_walk.h"

#include <gmock/gmock.h>

#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

class EntryWalk : public TrimTest {
 protected:
  /// The first steps of the entries that a walk visits.
  std::vector<std::uint64_t> walk(Step from) {
    objects_.forget_requests();
    SegmentReader segments(*stream_);
    std::vector<std::uint64_t> steps;
    const Status walked =
        for_each_entry(segments, newest(*other_)->head, from, {}, [&](const Entry& entry) {
          steps.push_back(entry.first_step.value);
          return Status::ok();
        });
    EXPECT_TRUE(walked.is_ok()) << walked.to_string();
    return steps;
  }
};

TEST_F(EntryWalk, OfAnEmptyStreamVisitsNothing) {
  EXPECT_THAT(walk(Step(0)), testing::IsEmpty());
}

TEST_F(EntryWalk, VisitsEveryEntryInOrder) {
  for (std::uint64_t count = 0; count <= 40; ++count) {
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < count; ++i) expected.push_back(2 * i);
    EXPECT_EQ(walk(Step(0)), expected);
    grow(1, 2);
  }
}

TEST_F(EntryWalk, VisitsAllThatEndAboveAStepAndFewOthers) {
  grow(40, 3);
  std::size_t loaded_before = SIZE_MAX;
  for (std::uint64_t from = 0; from < 120; ++from) {
    const auto steps = walk(Step(from));
    ASSERT_TRUE(std::ranges::is_sorted(steps));
    EXPECT_EQ(steps.back(), 117u);
    EXPECT_LE(steps.front(), from) << "the entry that holds it";
    for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_EQ(steps[i], steps[i - 1] + 3);
    const auto passed = std::ranges::count_if(steps, [&](auto step) { return step + 3 <= from; });
    EXPECT_LT(passed, 3) << "a segment has 3 entries, and so has a tail";
    const std::size_t loaded = objects_.count(Operation::kGet, "s/");
    EXPECT_LE(loaded, loaded_before);
    loaded_before = loaded;
  }
  EXPECT_EQ(loaded_before, 0u);
}

TEST_F(EntryWalk, EndsWithAnError) {
  grow(40);
  SegmentReader segments(*stream_);
  const HeadPtr head = newest(*other_);
  int visited = 0;
  const Status stopped = for_each_entry(segments, head->head, Step(0), {}, [&](const Entry&) {
    return ++visited == 5 ? Status::cancelled("enough") : Status::ok();
  });
  EXPECT_TRUE(stopped.is(ErrorKind::kCancelled));
  EXPECT_EQ(visited, 5);
  SegmentReader again(*stream_);
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kForbidden});
  EXPECT_TRUE(for_each_entry(again, head->head, Step(0), {}, [](const Entry&) {
                return Status::ok();
              }).is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::store
