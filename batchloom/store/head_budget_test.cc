// SPDX-License-Identifier: Apache-2.0
// A head stays below 64 KiB at any history: long ones, of pure proposals with the product's limits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/store/proposal.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

struct Workload {
  std::string name;
  std::uint64_t entries = 0;
  std::uint32_t ranks = 0;
  std::uint32_t steps = 1;
  bool run_tables = false;      ///< As large as they may be.
  std::size_t producers = 64;   ///< SIZE_MAX: until there is no room.
  std::size_t state_bytes = 0;  ///< Of each; mixed where `states_vary`.
  bool states_vary = false;
  bool producers_come_and_go = false;  ///< Each commit is by a new one.
};

class HeadBudget : public testing::TestWithParam<Workload> {
 protected:
  /// The longest names there may be.
  static std::string name_of(std::uint64_t number) { return fmt::format("{:x>63}", number); }

  /// As place_state() does.
  void set_state(Head& head, ProducerRow& row, std::size_t state_bytes) {
    if (state_fits_inline(head, row.producer, state_bytes, limits_)) {
      row.state = {.inline_bytes = Bytes(state_bytes, std::byte{0xff}), .ref = {}};
    } else {
      row.state = {.inline_bytes = {},
                   .ref = StateRef{row.term, row.next_seq, nonce(), 1u << 26, 0xffffffff}};
    }
  }

  Nonce nonce() { return Nonce(random_.next()); }

  void start_producers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto fenced = fence_producer(head_, name_of(i), limits_);
      if (!fenced.is_ok()) {
        EXPECT_TRUE(fenced.is(ErrorKind::kExhausted));
        break;
      }
      head_ = *fenced;
    }
  }

  /// The row that commits next; a new one where they come and go.
  Session next_session() {
    const Workload& workload = GetParam();
    if (workload.producers_come_and_go) {
      if (!current_.producer.empty()) head_ = finish_producer(head_, current_);
      current_.producer = name_of(head_.slot.value);
      head_ = fence_producer(head_, current_.producer, limits_).value();
      current_.term = Term(head_.slot.value);
    } else {
      const ProducerRow& row = head_.producers[random_.below(head_.producers.size())];
      current_ = {row.producer, row.term};
    }
    return current_;
  }

  std::vector<PendingBatch> some_batches(Seq first) {
    const Workload& workload = GetParam();
    std::vector<PendingBatch> batches(1 + random_.below(8));
    for (PendingBatch& batch : batches) {
      batch = {.seq = first,
               .nonce = nonce(),
               .size_bytes = UINT64_MAX,
               .steps = workload.steps,
               .ranks = workload.ranks,
               .run_table = {},
               .state_after = {}};
      if (workload.run_tables) {
        batch.run_table.resize(run_table_max_bytes(workload.ranks, workload.steps));
      }
      ++first;
    }
    return batches;
  }

  /// Commits; returns how many entries. The head that a seal replaces was as full as heads get.
  std::size_t commit() {
    const Session session = next_session();
    const auto batches = some_batches(head_.find_producer(session.producer)->next_seq);
    Proposal proposal =
        append_batches(head_, session, batches, test_uuid(1), limits_, [this] { return nonce(); });
    if (!proposal.segments.empty()) measure();
    head_ = std::move(proposal.head);
    const std::size_t most = GetParam().state_bytes;
    const std::size_t size = GetParam().states_vary ? random_.below(most + 1) : most;
    set_state(head_, *head_.find_producer(session.producer), size);
    return proposal.batches;
  }

  /// The head with as many events as its budget takes.
  Head with_events() const {
    Head head = head_;
    head.trim_intent = TrimIntent{.step = Step(UINT64_MAX), .slot = head.slot};
    std::size_t room = limits_.event_bytes;
    for (Step from_step(0); from_step < Step(20) && from_step < head.next_step; ++from_step) {
      head.topologies.push_back({from_step, 1, "pp=1000000000 dp=1 cp=1 tp=1"});
      room -= encoded_bound(head.topologies.back());
    }
    // Three of the largest, whose names are their own; none is in force.
    for (std::uint64_t i = 0; i < 3; ++i) {
      head.memberships.push_back(
          {.from_step = head.next_step + i,
           .digest = {.high = UINT64_MAX, .low = i},
           .producer = fmt::format("{:y>63}", i),
           .term = Term(1),
           .inline_keys = Bytes(limits_.inline_membership_max_bytes, std::byte{0xff}),
           .ref = {}});
      room -= encoded_bound(head.memberships.back());
    }
    for (Step step(0); room >= encoded_bound(step) && step < head.next_step; ++step) {
      head.skipped.push_back(step);
      room -= encoded_bound(step);
    }
    return head;
  }

  void measure() {
    head_.writer = {name_of(1), Term(1)};
    const Encoded encoded = encode_head(test_uuid(1), with_events());
    largest_ = std::max(largest_, encoded.bytes.size());
    ++heads_measured_;
    ASSERT_LE(encoded.bytes.size(), kHeadMaxBytes);
    const auto decoded = decode_head(test_uuid(1), head_.slot, encoded.bytes);
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  }

  Limits limits_;
  Random random_{1};
  Head head_;
  Session current_;
  std::size_t largest_ = 0;
  std::size_t heads_measured_ = 0;
};

TEST_P(HeadBudget, HoldsOverALongHistory) {
  head_.slot = Slot(1);
  if (!GetParam().producers_come_and_go) start_producers(GetParam().producers);
  std::uint64_t entries = 0;
  while (entries < GetParam().entries && !HasFatalFailure()) entries += commit();
  measure();
  EXPECT_GE(head_.next_step.value, GetParam().entries * GetParam().steps);
  EXPECT_GE(heads_measured_, 100u);
  EXPECT_GT(largest_, std::size_t{20} << 10) << "the budget should be used";
  RecordProperty("largest_head_bytes", static_cast<int>(largest_));
}

INSTANTIATE_TEST_SUITE_P(Workloads, HeadBudget,
                         testing::Values(Workload{.name = "TheDesigns",
                                                  .entries = 100'000,
                                                  .ranks = 1024,
                                                  .steps = 4,
                                                  .producers = 64,
                                                  .state_bytes = 4096},
                                         Workload{.name = "LargestRunTables",
                                                  .entries = 20'000,
                                                  .ranks = 128,
                                                  .run_tables = true,
                                                  .producers = SIZE_MAX,
                                                  .state_bytes = 300,
                                                  .states_vary = true},
                                         Workload{.name = "TableFullOfInlineStates",
                                                  .entries = 50'000,
                                                  .ranks = 8,
                                                  .steps = 1u << 31,
                                                  .producers = SIZE_MAX,
                                                  .state_bytes = 80},
                                         Workload{.name = "LargestInlineStates",
                                                  .entries = 20'000,
                                                  .ranks = 1,
                                                  .run_tables = true,
                                                  .producers = SIZE_MAX,
                                                  .state_bytes = 256},
                                         Workload{.name = "ProducersComeAndGo",
                                                  .entries = 50'000,
                                                  .ranks = 4,
                                                  .run_tables = true,
                                                  .state_bytes = 256,
                                                  .producers_come_and_go = true}),
                         [](const auto& workload) { return workload.param.name; });

}  // namespace
}  // namespace batchloom::store
