// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/proposal.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/check.h"

namespace batchloom::store {
namespace {

Entry entry_of(const PendingBatch& batch, const Session& session, Step first_step) {
  return {.first_step = first_step,
          .steps = batch.steps,
          .producer = session.producer,
          .term = session.term,
          .seq = batch.seq,
          .nonce = batch.nonce,
          .size_bytes = batch.size_bytes,
          .ranks = batch.ranks,
          .run_table = batch.run_table};
}

std::size_t rows_bytes(const Head& head) {
  std::size_t bytes = 0;
  for (const ProducerRow& row : head.producers) bytes += encoded_bound(row);
  return bytes;
}

// Drops the row of the producer that finished longest ago; false if none has.
bool drop_oldest_finished(Head& head) {
  auto oldest = head.producers.end();
  for (auto row = head.producers.begin(); row != head.producers.end(); ++row) {
    if (!row->finished) continue;
    if (oldest == head.producers.end() || row->last_slot < oldest->last_slot) oldest = row;
  }
  if (oldest == head.producers.end()) return false;
  head.producers.erase(oldest);
  return true;
}

ProducerRow& find_or_insert(Head& head, const std::string& producer) {
  if (ProducerRow* row = head.find_producer(producer)) return *row;
  ProducerRow row;
  row.producer = producer;
  const auto place = std::ranges::lower_bound(head.producers, producer, {}, &ProducerRow::producer);
  return *head.producers.insert(place, std::move(row));
}

}  // namespace

Status check_appendable(const Head& head, const Session& session,
                        std::span<const PendingBatch> batches) {
  if (batches.empty()) return Status::ok();
  if (head.ended) {
    return Status::invalid(fmt::format(
        "producer {}, batch {}: the stream ended before step {}; reopen it to append more",
        session.producer, batches.front().seq.value, head.next_step.value));
  }
  const TopologyRow* topology = head.topology_at(head.next_step);
  if (topology == nullptr) return Status::ok();
  for (const PendingBatch& batch : batches) {
    if (batch.ranks == topology->ranks) continue;
    return Status::invalid(fmt::format(
        "producer {}, batch {}: planned for {} HDP ranks, but the topology from step {} on, '{}', "
        "has {}; plan it anew, or set its topology",
        session.producer, batch.seq.value, batch.ranks, topology->from_step.value, topology->axes,
        topology->ranks));
  }
  return Status::ok();
}

Result<std::span<const PendingBatch>> still_pending(const Head& head, const Session& session,
                                                    std::span<const PendingBatch> batches,
                                                    const Safeguards& safeguards) {
  const ProducerRow* row = head.find_producer(session.producer);
  if (row == nullptr) {
    return Status::fenced(fmt::format(
        "producer {}: its row was dropped by slot {}, after it had finished: stop this session",
        session.producer, head.slot.value));
  }
  if (row->term != session.term && safeguards.hold(Safeguard::kTermCheck)) {
    return Status::fenced(fmt::format(
        "producer {}: term {} was replaced by term {}: a newer session exists; stop this one",
        session.producer, session.term.value, row->term.value));
  }
  for (std::size_t i = 1; i < batches.size(); ++i) {
    if (batches[i].seq == batches[i - 1].seq + 1) continue;
    return Status::invalid(
        fmt::format("producer {}: batch {} follows batch {}; sequence numbers must be dense",
                    session.producer, batches[i].seq.value, batches[i - 1].seq.value));
  }
  while (!batches.empty() && batches.front().seq < row->next_seq) {
    if (!safeguards.hold(Safeguard::kDropRule)) break;
    batches = batches.subspan(1);
  }
  if (!batches.empty() && row->finished) {
    return Status::invalid(
        fmt::format("producer {}: it finished in slot {}; open it again to go on", session.producer,
                    row->last_slot.value));
  }
  if (!batches.empty() && batches.front().seq > row->next_seq) {
    return Status::invalid(fmt::format("producer {}: batch {} is offered, but {} is next",
                                       session.producer, batches.front().seq.value,
                                       row->next_seq.value));
  }
  BL_RETURN_IF_ERROR(check_appendable(head, session, batches));
  return batches;
}

Proposal append_batches(const Head& head, const Session& session,
                        std::span<const PendingBatch> batches, const StreamUuid& uuid,
                        const Limits& limits, const std::function<Nonce()>& next_nonce) {
  std::vector<Entry> entries;
  Step step = head.next_step;
  for (const PendingBatch& batch : batches) {
    entries.push_back(entry_of(batch, session, step));
    step = step + batch.steps;
  }
  Proposal proposal{.head = successor(head), .segments = {}, .batches = 0};
  Head& next = proposal.head;
  proposal.batches = fitting_prefix(next, entries, limits);
  if (proposal.batches == 0) {
    proposal.segments = seal_tail(next, next.slot, uuid, limits, next_nonce);
    proposal.batches = fitting_prefix(next, entries, limits);
  }
  BL_CHECK(proposal.batches > 0, "an entry must fit into an empty tail");
  entries.resize(proposal.batches);
  next.next_step = entries.back().end_step();
  std::ranges::move(entries, std::back_inserter(next.tail));
  ProducerRow& row = *next.find_producer(session.producer);
  row.next_seq = std::max(row.next_seq, batches[proposal.batches - 1].seq + 1);
  row.last_slot = next.slot;
  return proposal;
}

bool state_fits_inline(const Head& head, const std::string& producer, std::size_t state_bytes,
                       const Limits& limits) {
  std::size_t others = 0;
  for (const ProducerRow& row : head.producers) {
    if (row.producer != producer) others += row.state.inline_bytes.size();
  }
  return state_bytes <= limits.inline_state_max_bytes &&
         others + state_bytes <= limits.inline_state_bytes;
}

Result<Head> fence_producer(const Head& head, const std::string& producer, const Limits& limits) {
  Head next = successor(head);
  ProducerRow& row = find_or_insert(next, producer);
  row.term = Term(next.slot.value);
  row.last_slot = next.slot;
  row.finished = false;
  while (rows_bytes(next) > limits.producer_bytes) {
    if (drop_oldest_finished(next)) continue;
    return Status::exhausted(
        fmt::format("producer {}: the table of producers is full ({} rows in slot {}); finish "
                    "producers that are done",
                    producer, head.producers.size(), head.slot.value));
  }
  return next;
}

Head finish_producer(const Head& head, const Session& session) {
  Head next = successor(head);
  ProducerRow& row = *next.find_producer(session.producer);
  row.finished = true;
  row.last_slot = next.slot;
  return next;
}

}  // namespace batchloom::store
