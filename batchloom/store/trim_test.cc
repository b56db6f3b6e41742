// SPDX-License-Identifier: Apache-2.0
// Trims of pure heads, against a plain list of all entries. Only segments lie in a store.
#include "batchloom/store/trim.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "batchloom/store/event_proposal.h"
#include "batchloom/store/head_transition.h"
#include "batchloom/store/proposal.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

const Writer kWriter{.producer = "p", .term = Term(2)};

class Trim : public StoreTest {
 protected:
  Trim() {
    head_.slot = Slot(1);
    advance(fence_producer(head_, kWriter.producer, limits_).value(), kWriter);
  }

  /// `next` becomes the newest head. It decodes, and it is what its slot may do.
  void advance(Head next, const Writer& writer = {}) {
    next.writer = writer;
    RC_ASSERT(transition_problems(head_, next).empty());
    const Encoded encoded = encode_head(stream_->uuid(), next);
    RC_ASSERT(decode_head(stream_->uuid(), next.slot, encoded.bytes).value().head == next);
    head_ = std::move(next);
  }

  /// Appends one batch of so many steps.
  void append(std::uint32_t steps) {
    const TopologyRow* topology = head_.topology_at(head_.next_step);
    PendingBatch batch;
    batch.seq = head_.producers[0].next_seq;
    batch.steps = steps;
    batch.ranks = topology == nullptr ? 1 : topology->ranks;
    Proposal proposal =
        append_batches(head_, {kWriter.producer, kWriter.term}, {&batch, 1}, stream_->uuid(),
                       limits_, [this] { return stream_->random_nonce(); });
    for (const PendingSegment& segment : proposal.segments) {
      RC_ASSERT(objstore::put_bytes(memory_, segment_key(segment.name), segment.object.bytes,
                                    objstore::PutCondition::absent(), {})
                    .is_ok());
    }
    entries_.push_back(proposal.head.tail.back());
    advance(std::move(proposal.head), kWriter);
  }

  void trim(Step step) {
    advance(propose_trim_intent(head_, step));
    advance(complete_trim(head_, step, {}));
  }

  /// Every step that is left is found as the plain list has it, and nothing more is kept.
  void expect_exact(const Head& head) {
    for (const Entry& entry : entries_) {
      for (Step step = entry.first_step; step < entry.end_step(); ++step) {
        const auto found = reader_.find(head, step, {});
        if (step < head.first_step) {
          RC_ASSERT(found.is(ErrorKind::kNotFound));
        } else {
          RC_ASSERT(found.value() == entry);
        }
      }
    }
    for (const Entry& entry : head.tail) RC_ASSERT(entry.end_step() > head.first_step);
    for (const auto& level : head.segments) {
      for (const SegmentRef& ref : level) RC_ASSERT(end_of(ref) > head.first_step);
    }
    const bool ends_with_a_level = head.segments.empty() || !head.segments.back().empty();
    RC_ASSERT(ends_with_a_level);
    for (std::size_t i = 1; i < head.topologies.size(); ++i) {
      RC_ASSERT(head.topologies[i].from_step > head.first_step);
    }
    for (std::size_t i = 1; i < head.memberships.size(); ++i) {
      RC_ASSERT(head.memberships[i].from_step > std::min(head.first_step, head.next_step - 1));
    }
    RC_ASSERT(!head.trim_intent);
  }

  Step end_of(const SegmentRef& ref) { return reader_.load(ref, {}).value()->end_step; }

  /// The segments that `head` needs, and where they end.
  std::map<std::string, Step> needed_segments(const Head& head) {
    std::map<std::string, Step> needed;
    const Status walked = reader_.for_each_ref(head, {}, [&](const SegmentRef& ref) {
      RC_ASSERT(needed.emplace(segment_key(ref.name()), end_of(ref)).second);
      return Status::ok();
    });
    RC_ASSERT(walked.is_ok());
    return needed;
  }

  Limits limits_ = {.tail_entries = 2, .arity = 2};
  Head head_;
  std::vector<Entry> entries_;
  SegmentReader reader_{*stream_};
};

TEST_F(Trim, AnIntentIsOfItsOwnSlotAndReplacesAnother) {
  append(3);
  const Head first = propose_trim_intent(head_, Step(2));
  EXPECT_EQ(first.trim_intent, (TrimIntent{.step = Step(2), .slot = Slot(4)}));
  const Head second = propose_trim_intent(first, Step(100));
  EXPECT_EQ(second.trim_intent, (TrimIntent{.step = Step(100), .slot = Slot(5)}))
      << "pins may keep steps that are not there yet";
  Head expected = successor(first);
  expected.trim_intent = second.trim_intent;
  EXPECT_EQ(second, expected) << "nothing else changes";
}

TEST_F(Trim, AnIntentIsWithdrawn) {
  append(3);
  const Head announced = propose_trim_intent(head_, Step(2));
  EXPECT_EQ(withdraw_trim_intent(announced), successor(successor(head_)));
  EXPECT_DEATH(static_cast<void>(withdraw_trim_intent(head_)), "no intent");
}

TEST_F(Trim, KeepsAPackUntilItsLastStepGoes) {
  for (int i = 0; i < 2; ++i) append(4);
  for (std::uint64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(complete_trim(head_, Step(step), {}).tail, entries_) << step;
  }
  const Head trimmed = complete_trim(head_, Step(4), {});
  EXPECT_EQ(trimmed.tail, std::vector{entries_[1]});
  EXPECT_EQ(trimmed.first_step, Step(4));
}

TEST_F(Trim, KeepsWhatIsSkippedAndPlannedFromTheFirstStepOn) {
  Head head = small_head();  // Topologies from 2 and 12, skips 8 and 13.
  EXPECT_EQ(complete_trim(head, Step(8), {}).skipped, head.skipped);
  EXPECT_EQ(complete_trim(head, Step(9), {}).skipped, std::vector{Step(13)});
  EXPECT_EQ(complete_trim(head, Step(11), {}).topologies, head.topologies);
  EXPECT_EQ(complete_trim(head, Step(12), {}).topologies, std::vector{head.topologies[1]});
  const Head all = complete_trim(head, Step(16), {});
  EXPECT_TRUE(all.skipped.empty());
  EXPECT_EQ(all.topologies, std::vector{head.topologies[1]}) << "it holds for what comes";
  EXPECT_TRUE(all.ended);
  EXPECT_EQ(complete_trim(head, Step(13), {}).memberships, head.memberships);
  EXPECT_EQ(complete_trim(head, Step(14), {}).memberships, std::vector{head.memberships[1]});
  head.memberships[1].from_step = Step(20);
  EXPECT_EQ(complete_trim(head, Step(16), {}).memberships, head.memberships) << "not in force yet";
  head.memberships[1].from_step = head.next_step;
  EXPECT_EQ(complete_trim(head, Step(16), {}).memberships, head.memberships)
      << "the last step was made by the one before";
  head.topologies[0].from_step = Step(9);
  EXPECT_EQ(complete_trim(head, Step(8), {}).topologies, head.topologies) << "none holds yet";
}

TEST_F(Trim, GoesNoFurtherThanTheStream) {
  for (int i = 0; i < 9; ++i) append(1);
  trim(Step(100));
  EXPECT_EQ(head_.first_step, Step(9));
  EXPECT_TRUE(head_.tail.empty());
  EXPECT_TRUE(head_.segments.empty());
  for (int i = 0; i < 9; ++i) append(2);
  expect_exact(head_);
  EXPECT_EQ(head_.first_step, Step(9));
}

TEST_F(Trim, DoesNotGoBack) {
  for (int i = 0; i < 9; ++i) append(1);
  trim(Step(5));
  std::vector<Safeguard> asked;
  Safeguards safeguards{.broken = {}, .on_use = [&](Safeguard one) { asked.push_back(one); }};
  EXPECT_EQ(complete_trim(head_, Step(3), safeguards).first_step, Step(5));
  EXPECT_EQ(asked, std::vector{Safeguard::kFirstStepMax});
  EXPECT_EQ(complete_trim(head_, Step(5), safeguards).first_step, Step(5));
  EXPECT_EQ(complete_trim(head_, Step(6), safeguards).first_step, Step(6));
  EXPECT_EQ(asked.size(), 1u) << "it has nothing to decide there";
  safeguards.broken = Safeguard::kFirstStepMax;
  EXPECT_EQ(complete_trim(head_, Step(3), safeguards).first_step, Step(3));
}

TEST_F(Trim, AtEveryStepKeepsAllLaterOnesAndNothingElse) {
  for (std::uint32_t i = 0; i < 41; ++i) append(1 + i % 4);
  ASSERT_GE(head_.segments.size(), 4u);
  const std::map<std::string, Step> all = needed_segments(head_);
  for (Step step(0); step < head_.next_step + 2; ++step) {
    const Head trimmed = complete_trim(head_, step, {});
    EXPECT_EQ(trimmed.first_step, std::min(step, head_.next_step));
    expect_exact(trimmed);
    std::map<std::string, Step> expected = all;
    std::erase_if(expected,
                  [&](const auto& segment) { return segment.second <= trimmed.first_step; });
    EXPECT_EQ(needed_segments(trimmed), expected);
  }
}

/// Appends, events and trims in any order.
RC_GTEST_FIXTURE_PROP(Trim, AmongCommitsKeepsAllLaterStepsAndNothingElse, ()) {
  limits_.tail_entries = *rc::gen::inRange<std::size_t>(1, 4);
  limits_.arity = *rc::gen::inRange<std::size_t>(2, 4);
  std::size_t levels_kept = 0;  // By trims that took something away.
  for (const int action : *rc::gen::container<std::vector<int>>(60, rc::gen::inRange(0, 40))) {
    const auto ahead = *rc::gen::inRange<std::uint64_t>(0, 20);
    const Step first_step = head_.first_step;
    if (action == 0) {
      trim(head_.next_step + ahead);
    } else if (action < 3) {
      trim(head_.first_step + ahead);
    } else if (action < 5) {
      const auto dp = *rc::gen::inRange<std::uint32_t>(1, 4);
      const auto topology = model::Topology::create({{model::Axis::kDp, dp}}).value();
      const auto next = propose_topology(head_, topology, limits_).value();
      if (next) advance(*next);
    } else if (action == 5) {
      MembershipRow row{.from_step = head_.next_step + ahead,
                        .digest = {.high = 0, .low = ahead % 3},
                        .producer = kWriter.producer,
                        .term = kWriter.term,
                        .inline_keys = {},
                        .ref = {}};
      const auto next = propose_membership(head_, row, limits_);
      if (next.is_ok() && *next) advance(**next);
    } else if (action < 8) {
      const auto next = propose_skip(head_, head_.first_step + ahead, limits_);
      if (next.is_ok() && *next) advance(**next);
    } else {
      append(*rc::gen::inRange<std::uint32_t>(1, 5));
    }
    if (head_.first_step == first_step) continue;
    expect_exact(head_);
    levels_kept = std::max(levels_kept, head_.segments.size());
  }
  trim(head_.first_step);
  expect_exact(head_);
  RC_CLASSIFY(levels_kept >= 2);
  RC_CLASSIFY(levels_kept >= 3);
}

}  // namespace
}  // namespace batchloom::store
