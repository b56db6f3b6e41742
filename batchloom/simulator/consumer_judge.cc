// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/consumer_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"

namespace batchloom::simulator {

using client::ConsumerState;
using client::StepBatch;
using store::Entry;
using store::Slot;
using store::Step;

namespace {

/// As client::next_samples_hash() is documented.
std::uint64_t hash_after(std::uint64_t before, std::uint64_t samples_digest) {
  Digest digest;
  digest.add_int(before);
  digest.add_int(samples_digest);
  return digest.value();
}

std::string to_string(const std::optional<client::DeliveredStep>& last) {
  if (!last) return "no step";
  return fmt::format("step {} with digest {:016x}", last->step.value, last->samples_digest);
}

}  // namespace

void ConsumerJudge::fail(std::string_view rule, std::string_view text) {
  violations_.add(
      rule, fmt::format("rank {} at step {}: {}", consumer_.rank.value, tally_.next.value, text));
}

void ConsumerJudge::opened(const OpenedConsumer& consumer, const Tally& tally) {
  consumer_ = consumer;
  tally_ = tally;
  // As long as the slot that was asked for is there, it is that one for everybody.
  const bool is_there = is_stored(consumer.min_slot);
  const SlotFacts* head = history_.slot(consumer.opened_with);
  if (consumer.opened_with < consumer.min_slot || head == nullptr ||
      (is_there && consumer.opened_with != consumer.min_slot)) {
    fail("I15", fmt::format("opened with slot {} of {}, though asked for slot {}, or a later one "
                            "where the floor ({}) has passed it",
                            consumer.opened_with.value, history_.newest().value,
                            consumer.min_slot.value, history_.floor().value));
  } else if (consumer.min_slot != Slot() && consumer.min_slot != consumer.opened_with &&
             skips_before(head->next_step)) {
    fail("I15", fmt::format("opened with slot {}, which skips steps from here on, though asked for "
                            "slot {}, which is gone: others may not pass over them",
                            consumer.opened_with.value, consumer.min_slot.value));
  }
}

void ConsumerJudge::refused(const OpenedConsumer& consumer) {
  consumer_ = consumer;
  if (consumer.min_slot != Slot() && !is_stored(consumer.min_slot)) return;
  fail("I15", fmt::format("was told that the head of slot {} is gone, but the floor is {}",
                          consumer.min_slot.value, history_.floor().value));
}

bool ConsumerJudge::is_skipped(Step step) const {
  const std::optional<Slot> by = history_.skipped_by(step);
  return by && *by <= consumer_.opened_with;
}

bool ConsumerJudge::skips_before(Step end) const {
  for (Step step = tally_.next; step < end; ++step) {
    if (is_skipped(step)) return true;
  }
  return false;
}

Step ConsumerJudge::due() const {
  Step step = tally_.next;
  while (is_skipped(step)) ++step;
  return step;
}

void ConsumerJudge::delivered(const StepBatch& batch) {
  const Step wanted = due();
  if (batch.step != wanted) {
    const bool backward = batch.step < tally_.next;
    fail(backward ? "I7" : "I15",
         fmt::format("was given step {}, but {} is due by the SKIPs of slot {}", batch.step.value,
                     wanted.value, consumer_.opened_with.value));
  }
  const Entry* entry = history_.entry_of(batch.step);
  if (entry == nullptr) {
    fail("I13", fmt::format("was given step {}, which nobody committed", batch.step.value));
  } else {
    check_content(batch, *entry);
  }
  for (Step step = tally_.next; step < batch.step; ++step) tally_.passed_over.push_back(step);
  tally_.samples_hash = hash_after(tally_.samples_hash, batch.samples_digest);
  tally_.last = client::DeliveredStep{batch.step, batch.samples_digest};
  for (const store::RunMicroBatch& micro_batch : batch.micro_batches) {
    for (const store::RunPiece& piece : micro_batch.pieces) tally_.tokens += piece.hi - piece.lo;
  }
  tally_.next = batch.step + 1;
}

RankOf ConsumerJudge::part_of(const Entry& entry) const {
  return {.rank = consumer_.rank, .ranks = consumer_.ranks == 0 ? entry.ranks : consumer_.ranks};
}

void ConsumerJudge::check_content(const StepBatch& batch, const Entry& entry) {
  const RankOf part = part_of(entry);
  const auto position = static_cast<std::uint32_t>(batch.step - entry.first_step);
  const ExpectedStep expected = sources_.expected(entry, position, part);
  const auto compare = [&](std::string_view what, const auto& told, const auto& right) {
    if (told == right) return;
    fail("I13", fmt::format("step {}, rank {} of {}: the {} is not what {} made of batch {}",
                            batch.step.value, part.rank.value, part.ranks, what, entry.producer,
                            entry.seq.value));
  };
  compare("producer", batch.producer, entry.producer);
  compare("content", content_hash({batch.global_valid_labels, batch.micro_batches, batch.events}),
          expected.content_hash);
  compare("digest of the samples", batch.samples_digest, expected.samples_digest);
  compare("digest of the plan", batch.plan_digest, expected.plan_digest);
  compare("count of labels", batch.global_valid_labels, expected.global_valid_labels);
}

void ConsumerJudge::at_end() {
  const Step end = due();
  for (Slot slot = std::max(consumer_.min_slot, Slot(1)); slot <= history_.newest(); ++slot) {
    const SlotFacts* facts = history_.slot(slot);
    if (facts->ended && facts->next_step == end) return;
  }
  fail("I15",
       fmt::format("was told that the stream ends before step {}, where it never has", end.value));
}

void ConsumerJudge::state_told(const ConsumerState& state) {
  if (state.next_step != tally_.next || state.samples_hash != tally_.samples_hash) {
    fail("I7",
         fmt::format("its state is step {} with hash {:016x}; it was given steps with {:016x}",
                     state.next_step.value, state.samples_hash, tally_.samples_hash));
  }
  if (state.last != tally_.last) {
    fail("I7", fmt::format("its state has seen {} last; it was given {}", to_string(state.last),
                           to_string(tally_.last)));
  }
}

void ConsumerJudge::check_whole(Step end) {
  if (due() != end) {
    fail("I7", fmt::format("its training ends before step {} of {}", due().value, end.value));
  }
  std::uint64_t tokens = 0;
  for (Step step = tally_.base; step < tally_.next; ++step) {
    if (std::ranges::binary_search(tally_.passed_over, step)) continue;
    const Entry* entry = history_.entry_of(step);
    if (entry == nullptr) continue;
    const auto position = static_cast<std::uint32_t>(step - entry->first_step);
    tokens += sources_.tokens(*entry, position, part_of(*entry));
  }
  if (tokens == tally_.tokens) return;
  fail("I7", fmt::format("its training took {} tokens; its part of the stream has {}",
                         tally_.tokens, tokens));
}

}  // namespace batchloom::simulator
