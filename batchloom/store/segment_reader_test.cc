// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/segment_reader.h"

#include <algorithm>
#include <functional>
#include <set>

#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

/// A stream of 40 entries of one to three steps in tails of three, so that there are three levels.
class Segments : public StoreTest {
 protected:
  Segments() {
    const auto session = open_session(*other_, "p");
    for (Seq seq(0); seq < Seq(40); ++seq) {
      const auto steps = static_cast<std::uint32_t>(1 + seq.value % 3);
      EXPECT_TRUE(session->commit(std::array{upload_batch(*session, seq, "", steps)}, {}).is_ok());
      heads_.push_back(newest(*other_));
    }
  }

  const Head& head() const { return heads_.back()->head; }
  Result<Entry> find(Step step) { return reader_.find(head(), step, {}); }
  std::vector<SegmentRef> all_refs() {
    std::vector<SegmentRef> refs;
    EXPECT_TRUE(reader_
                    .for_each_ref(head(), {},
                                  [&](const SegmentRef& ref) {
                                    refs.push_back(ref);
                                    return Status::ok();
                                  })
                    .is_ok());
    return refs;
  }
  const SegmentRef& oldest_ref() const { return head().segments.back().front(); }
  void remove_object(const std::string& key) {
    ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  }

  std::vector<HeadPtr> heads_;
  SegmentReader reader_{*stream_};
};

TEST_F(Segments, EveryStepIsFoundFromEveryHeadThatCoversIt) {
  ASSERT_GE(head().segments.size(), 3u);
  for (const HeadPtr& from : heads_) {
    Step step(0);
    for (Seq seq(0); seq < from->head.producers[0].next_seq; ++seq) {
      const Step end = step + 1 + seq.value % 3;
      for (; step < end; ++step) {
        const auto entry = reader_.find(from->head, step, {});
        ASSERT_TRUE(entry.is_ok()) << entry.status().to_string();
        EXPECT_EQ(entry->seq, seq);
        EXPECT_EQ(entry->end_step(), end);
      }
    }
    EXPECT_EQ(step, from->head.next_step);
  }
}

TEST_F(Segments, StepsOutsideAreNotFound) {
  const auto beyond = find(head().next_step);
  EXPECT_TRUE(beyond.is(ErrorKind::kNotFound));
  EXPECT_NE(beyond.status().message().find("79"), std::string_view::npos);
  Head trimmed = head();
  trimmed.first_step = Step(5);
  EXPECT_TRUE(reader_.find(trimmed, Step(4), {}).is(ErrorKind::kNotFound));
  EXPECT_TRUE(reader_.find(trimmed, Step(5), {}).is_ok());
  EXPECT_TRUE(reader_.find(newest(*other_)->head, Step(UINT64_MAX), {}).is(ErrorKind::kNotFound));
}

TEST_F(Segments, AStepOfTheTailNeedsNoRequest) {
  EXPECT_TRUE(find(head().next_step - 1).is_ok());
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(Segments, AStepNeedsOneRequestForEachLevelAndThenNone) {
  EXPECT_TRUE(find(Step(0)).is_ok());
  EXPECT_EQ(objects_.requests().size(), head().segments.size());
  EXPECT_TRUE(find(Step(1)).is_ok());
  EXPECT_EQ(objects_.requests().size(), head().segments.size());
}

TEST_F(Segments, TheCacheIsBoundedAndKeepsWhatIsUsed) {
  const SegmentRef first = oldest_ref();
  SegmentReader small(*stream_, first.size_bytes + 1);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(small.load(first, {}).is_ok());
  EXPECT_EQ(objects_.requests().size(), 1u);
  const SegmentRef second = head().segments.front().front();
  EXPECT_TRUE(small.load(second, {}).is_ok());
  EXPECT_TRUE(small.load(second, {}).is_ok());
  EXPECT_EQ(objects_.requests().size(), 2u);
  EXPECT_TRUE(small.load(first, {}).is_ok());
  EXPECT_EQ(objects_.requests().size(), 3u) << "evicted";
}

TEST_F(Segments, TheLeastRecentlyUsedGoesFirst) {
  std::vector<SegmentRef> leaves = all_refs();
  std::erase_if(leaves, [](const SegmentRef& ref) { return ref.level != 0; });
  std::ranges::sort(leaves, std::greater(), &SegmentRef::size_bytes);
  ASSERT_GE(leaves.size(), 3u);
  SegmentReader two(*stream_, leaves[0].size_bytes + leaves[1].size_bytes);
  for (const std::size_t i : {0U, 1U, 0U, 2U}) EXPECT_TRUE(two.load(leaves[i], {}).is_ok());
  objects_.forget_requests();
  EXPECT_TRUE(two.load(leaves[0], {}).is_ok());
  EXPECT_TRUE(objects_.requests().empty());
  EXPECT_TRUE(two.load(leaves[1], {}).is_ok());
  EXPECT_EQ(objects_.requests().size(), 1u);
}

TEST_F(Segments, AreVisitedOnceParentsFirstWithoutLoadingLeaves) {
  std::set<std::string> seen;
  std::set<std::string> announced;
  for (const auto& level : head().segments) {
    for (const SegmentRef& ref : level) announced.insert(segment_key(ref.name()));
  }
  for (const SegmentRef& ref : all_refs()) {
    const std::string key = segment_key(ref.name());
    EXPECT_TRUE(seen.insert(key).second) << key;
    EXPECT_TRUE(announced.contains(key)) << key << " came before its parent";
    if (ref.level == 0) continue;
    const auto segment = reader_.load(ref, {}).value();
    for (const SegmentRef& child : segment->children) {
      announced.insert(segment_key(child.name()));
    }
  }
  EXPECT_EQ(seen, announced);
  const auto stored = keys("s/");
  EXPECT_EQ(seen, std::set<std::string>(stored.begin(), stored.end())) << "nobody lost a race";
  for (const Request& request : objects_.requests()) {
    EXPECT_NE(parse_segment_key(request.key)->level, 0u);
  }
}

TEST_F(Segments, ThatWereTrimmedAreNeitherVisitedNorLoaded) {
  for (const Step first_step : {Step(6), Step(17), Step(40), Step(62)}) {
    std::set<std::string> needed;
    for (const SegmentRef& ref : all_refs()) {
      if (reader_.load(ref, {}).value()->end_step <= first_step) continue;
      needed.insert(segment_key(ref.name()));
    }
    Head trimmed = complete_trim(head(), first_step, {});
    SegmentReader reader(*stream_);
    objects_.forget_requests();
    std::set<std::string> visited;
    ASSERT_TRUE(reader
                    .for_each_ref(trimmed, {},
                                  [&](const SegmentRef& ref) {
                                    visited.insert(segment_key(ref.name()));
                                    return Status::ok();
                                  })
                    .is_ok());
    EXPECT_EQ(visited, needed) << first_step.value;
    EXPECT_LT(visited.size(), keys("s/").size());
    for (const Request& request : objects_.requests()) EXPECT_TRUE(needed.contains(request.key));
  }
}

TEST_F(Segments, AVisitEndsTheWalk) {
  int visits = 0;
  const Status status = reader_.for_each_ref(head(), {}, [&](const SegmentRef&) {
    return ++visits == 2 ? Status::cancelled("enough") : Status::ok();
  });
  EXPECT_TRUE(status.is(ErrorKind::kCancelled));
  EXPECT_EQ(visits, 2);
}

TEST_F(Segments, AMissingOneIsCorruption) {
  remove_object(segment_key(oldest_ref().name()));
  const auto entry = find(Step(0));
  EXPECT_TRUE(entry.is(ErrorKind::kCorruption));
  EXPECT_NE(entry.status().message().find(segment_key(oldest_ref().name())), std::string::npos);
  const auto ignore = [](const SegmentRef&) { return Status::ok(); };
  EXPECT_TRUE(reader_.for_each_ref(head(), {}, ignore).is(ErrorKind::kCorruption));
}

TEST_F(Segments, AnotherOneInItsPlaceIsCorruption) {
  const SegmentRef& newer = head().segments.front().back();
  const auto data = memory_.get(segment_key(newer.name()), {}, {}).value();
  ASSERT_TRUE(objstore::put_bytes(memory_, segment_key(oldest_ref().name()), data->bytes,
                                  objstore::PutCondition::none(), {})
                  .is_ok());
  EXPECT_TRUE(find(Step(0)).is(ErrorKind::kCorruption));
}

TEST_F(Segments, DamageOnTheWayIsReadAgain) {
  objects_.next(
      {.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kDamaged, .times = 2});
  EXPECT_TRUE(find(Step(0)).is_ok());
}

TEST_F(Segments, LastingDamageAndErrorsAreNotCached) {
  objects_.next(
      {.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kDamaged, .times = 3});
  EXPECT_TRUE(find(Step(0)).is(ErrorKind::kCorruption));
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kUnavailable});
  EXPECT_TRUE(find(Step(0)).is(ErrorKind::kUnavailable));
  EXPECT_TRUE(find(Step(0)).is_ok());
}

TEST_F(Segments, AHoleIsCorruption) {
  Head holed = head();
  holed.segments.clear();
  EXPECT_TRUE(reader_.find(holed, Step(0), {}).is(ErrorKind::kCorruption));
}

}  // namespace
}  // namespace batchloom::store
