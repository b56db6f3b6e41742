// SPDX-License-Identifier: Apache-2.0
// What a commit that seals may do to the tail and to the references to segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <functional>

#include "batchloom/base/random.h"
#include "batchloom/store/head_transition.h"
#include "batchloom/store/proposal.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

SegmentRef ref_of(Slot slot, std::uint32_t level, Step first_step) {
  return {.slot = slot, .level = level, .nonce = Nonce(first_step.value), .first_step = first_step};
}

Entry entry_of(Step step) {
  Entry entry;
  entry.first_step = step;
  entry.producer = "a";
  entry.term = Term(5);
  entry.seq = Seq(step.value);
  return entry;
}

// Slot 49 of producer "a": steps 0 to 19 in three levels, 20 and 21 in the tail.
Head before_sealing() {
  Head head;
  head.slot = Slot(49);
  head.writer = {.producer = "a", .term = Term(5)};
  head.next_step = Step(22);
  head.producers.resize(1);
  head.producers[0].producer = "a";
  head.producers[0].term = Term(5);
  head.producers[0].next_seq = Seq(22);
  head.producers[0].last_slot = Slot(49);
  head.segments = {{ref_of(Slot(40), 0, Step(16)), ref_of(Slot(42), 0, Step(18))},
                   {ref_of(Slot(30), 1, Step(8)), ref_of(Slot(32), 1, Step(12))},
                   {ref_of(Slot(20), 2, Step(0)), ref_of(Slot(25), 2, Step(4))}};
  head.tail = {entry_of(Step(20)), entry_of(Step(21))};
  return head;
}

// The tail has become a segment of level 0; step 22 begins a new one.
Head sealed() {
  Head head = before_sealing();
  head.slot = Slot(50);
  head.next_step = Step(23);
  head.producers[0].next_seq = Seq(23);
  head.producers[0].last_slot = Slot(50);
  head.segments[0].push_back(ref_of(Slot(50), 0, Step(20)));
  head.tail = {entry_of(Step(22))};
  return head;
}

// Level 0 has moved up as well.
Head moved() {
  Head head = sealed();
  head.segments[0] = {ref_of(Slot(50), 0, Step(20))};
  head.segments[1].push_back(ref_of(Slot(50), 1, Step(16)));
  return head;
}

// Level 1, and then level 0.
Head moved_twice() {
  Head head = moved();
  head.segments[1] = {ref_of(Slot(50), 1, Step(16))};
  head.segments[2].push_back(ref_of(Slot(50), 2, Step(8)));
  return head;
}

// Level 0, and level 1 with what had come up: the new segment of level 1 is a child of that of
// level 2.
Head moved_in_turn() {
  Head head = moved_twice();
  head.segments[1].clear();
  return head;
}

// The highest level: there is one more.
Head grown() {
  Head head = sealed();
  head.segments[2].clear();
  head.segments.push_back({ref_of(Slot(50), 3, Step(0))});
  return head;
}

TEST(HeadTransitionSeal, AcceptsWhatASealDoes) {
  for (const auto after : {sealed, moved, moved_twice, moved_in_turn, grown}) {
    EXPECT_THAT(transition_problems(before_sealing(), after()), IsEmpty());
  }
}

/// A seal that breaks one rule, and what is said about it.
struct BadSeal {
  const char* name;
  Head (*good)();
  std::function<void(Head&)> breaks;
  const char* reason;
};

class HeadTransitionSealRefuses : public testing::TestWithParam<BadSeal> {};

TEST_P(HeadTransitionSealRefuses, AndSaysWhy) {
  Head after = GetParam().good();
  GetParam().breaks(after);
  EXPECT_THAT(transition_problems(before_sealing(), after), Contains(HasSubstr(GetParam().reason)));
}

using Refs = std::vector<SegmentRef>;
constexpr auto kNoLeaf = "the tail is gone, but no segment of this slot begins at step 20";
constexpr auto kLevel0 = "level 0 has neither slot 49's segments nor one of this slot instead";
constexpr auto kLevel1 = "level 1 has neither slot 49's segments nor one of this slot instead";
constexpr auto kLevel2 = "level 2 has neither slot 49's segments nor one of this slot instead";
constexpr auto kTop = "the segments from step 0 on are gone into none of this slot";

const BadSeal kBadSeals[] = {
    {"HalfTheTail", sealed, [](Head& h) { h.tail.insert(h.tail.begin(), entry_of(Step(21))); },
     "the tail is not what slot 49 left"},
    {"NoLeaf", sealed, [](Head& h) { h.segments[0].pop_back(); }, kNoLeaf},
    {"NoLevels", sealed, [](Head& h) { h.segments.clear(); }, kNoLeaf},
    {"LeafOfAnOlderSlot", sealed, [](Head& h) { h.segments[0].back().slot = Slot(49); }, kNoLeaf},
    {"LeafOfHalfTheTail", sealed, [](Head& h) { h.segments[0].back().first_step = Step(21); },
     kNoLeaf},
    {"TwoLeaves", sealed,
     [](Head& h) { h.segments[0].insert(h.segments[0].end() - 1, ref_of(Slot(50), 0, Step(19))); },
     kLevel0},
    {"ChangedReference", sealed, [](Head& h) { ++h.segments[0][0].crc; }, kLevel0},
    {"ChangedOldestReference", sealed, [](Head& h) { ++h.segments[2][0].size_bytes; }, kLevel2},
    {"LostReference", sealed, [](Head& h) { h.segments[1].erase(h.segments[1].begin()); }, kLevel1},
    {"LostLevel", sealed, [](Head& h) { h.segments[1].clear(); }, kLevel2},
    {"LostTopLevel", sealed, [](Head& h) { h.segments.pop_back(); }, kTop},
    {"NewWithoutChildren", sealed,
     [](Head& h) { h.segments[1].push_back(ref_of(Slot(50), 1, Step(16))); }, kLevel1},
    {"HalfTheLevel", moved,
     [](Head& h) { h.segments[0].insert(h.segments[0].begin(), ref_of(Slot(42), 0, Step(18))); },
     kLevel0},
    {"NoParent", moved, [](Head& h) { h.segments[1].pop_back(); }, kLevel1},
    {"ParentOfAnOlderSlot", moved, [](Head& h) { h.segments[1].back().slot = Slot(48); }, kLevel1},
    {"ParentOfHalfTheLevel", moved, [](Head& h) { h.segments[1].back().first_step = Step(18); },
     kLevel1},
    {"TwoParents", moved, [](Head& h) { h.segments[1].push_back(ref_of(Slot(50), 1, Step(18))); },
     kLevel1},
    {"NoParentOfTheUpper", moved_twice, [](Head& h) { h.segments[2].pop_back(); }, kLevel2},
    {"ParentOfTheUpperBeginsLate", moved_in_turn,
     [](Head& h) { h.segments[2].back().first_step = Step(16); }, kLevel2},
    {"NoNewTop", grown, [](Head& h) { h.segments.pop_back(); }, kTop},
};

INSTANTIATE_TEST_SUITE_P(BadSeals, HeadTransitionSealRefuses, testing::ValuesIn(kBadSeals),
                         [](const auto& seal) { return std::string(seal.param.name); });

TEST(HeadTransitionSeal, MovesNoLevelOfOne) {
  Head old = before_sealing();
  old.segments[2].pop_back();
  EXPECT_THAT(transition_problems(old, grown()), Contains(HasSubstr(kLevel2)));
}

// True for a level whose segments have moved up and that has got a new one. Without it, it would
// look as if the new one had gone along: heads do not tell, the tree of segments does.
bool is_refilled(const Head& old, const Head& next, std::size_t level) {
  const auto& refs = next.segments[level];
  return level > 0 && level < old.segments.size() && !old.segments[level].empty() &&
         refs.size() == 1 && refs[0].slot == next.slot;
}

// Nothing that a head carries over can go, or become something else, unnoticed.
void expect_tight(const Head& old, const Head& next) {
  const auto expect_refused = [&](const auto& breaks) {
    Head broken = next;
    breaks(broken);
    EXPECT_THAT(transition_problems(old, broken), Not(IsEmpty()));
  };
  for (std::size_t level = 0; level < next.segments.size(); ++level) {
    for (std::size_t i = 0; i < next.segments[level].size(); ++i) {
      const auto place = static_cast<std::ptrdiff_t>(i);
      const auto refs = [level](Head& head) -> Refs& { return head.segments[level]; };
      expect_refused([&](Head& head) { ++refs(head)[i].first_step; });
      if (!is_refilled(old, next, level)) {
        expect_refused([&](Head& head) { refs(head).erase(refs(head).begin() + place); });
      }
      if (next.segments[level][i].slot < next.slot) {
        expect_refused([&](Head& head) { ++refs(head)[i].crc; });
      }
    }
  }
  for (std::size_t i = 0; i < next.tail.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    expect_refused([&](Head& head) { head.tail.erase(head.tail.begin() + place); });
  }
}

void follow_commits(const Limits& limits, int commits_per_trim = INT_MAX) {
  ASSERT_TRUE(validate(limits).is_ok());
  Random random(limits.segment_bytes);
  const Session session{.producer = "a", .term = Term(5)};
  Head head = before_sealing();
  head.segments.clear();
  for (int commit = 0; commit < 400; ++commit) {
    PendingBatch batch;
    batch.seq = head.producers[0].next_seq;
    Proposal proposal = append_batches(head, session, {&batch, 1}, {}, limits,
                                       [&] { return Nonce(random.next()); });
    proposal.head.writer = {session.producer, session.term};
    EXPECT_THAT(transition_problems(head, proposal.head), IsEmpty()) << "commit " << commit;
    expect_tight(head, proposal.head);
    head = std::move(proposal.head);
    if (commit % commits_per_trim != commits_per_trim - 1) continue;
    const Step step(head.first_step.value + random.below(head.next_step - head.first_step + 1));
    head = complete_trim(head, step, {});
  }
  if (commits_per_trim < INT_MAX) return;
  EXPECT_GE(head.segments.size(), 4u) << "levels should be there to be carried over";
}

TEST(HeadTransitionSeal, AcceptsNoMoreThanWhatCommitsDo) {
  follow_commits({.tail_entries = 2, .arity = 2});
  follow_commits({.tail_entries = 3, .arity = 3});
}

TEST(HeadTransitionSeal, AcceptsNoMoreThanWhatCommitsAfterTrimsDo) {
  for (const int commits_per_trim : {1, 5, 30}) {
    follow_commits({.tail_entries = 2, .arity = 2}, commits_per_trim);
    follow_commits({.tail_entries = 3, .arity = 3}, commits_per_trim);
  }
}

TEST(HeadTransitionSeal, AcceptsNoMoreThanWhatTheByteBudgetDoes) {
  for (std::size_t refs = 3; refs < 12; ++refs) {
    follow_commits({.tail_entries = 1, .segment_bytes = refs * encoded_bound(SegmentRef{})});
  }
}

}  // namespace
}  // namespace batchloom::store
