// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/store_fixture_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/slot_writer.h"

namespace batchloom::store {
namespace {

// Heads only move forward.
Status check_successor(const Head& before, const StoredHead& stored, std::uint32_t crc_before) {
  const Head& after = stored.head;
  const auto wrong = [&](std::string_view what) {
    return Status::corruption(fmt::format("{}: {}", manifest_key(after.slot), what));
  };
  if (after.previous_crc != crc_before) return wrong("breaks the chain");
  if (after.next_step < before.next_step) return wrong("has a lower next step");
  if (after.first_step < before.first_step) return wrong("has a lower first step");
  for (const ProducerRow& row : before.producers) {
    const ProducerRow* later = after.find_producer(row.producer);
    if (later == nullptr && !row.finished) return wrong("lost the row of " + row.producer);
    if (later == nullptr) continue;
    if (later->term < row.term) return wrong("has a lower term of " + row.producer);
    if (later->next_seq < row.next_seq) return wrong("forgets batches of " + row.producer);
  }
  return Status::ok();
}

Status check_chain(const Stream& stream, ManifestReader& reader, Slot newest) {
  BL_ASSIGN_OR_RETURN(const Slot floor, read_floor(stream, {}));
  HeadPtr before;
  for (Slot slot = floor + 1; slot <= newest; ++slot) {
    BL_ASSIGN_OR_RETURN(const std::optional<HeadPtr> head, reader.at(slot, {}));
    if (!head) return Status::corruption(manifest_key(slot) + " is missing");
    if (before != nullptr) {
      BL_RETURN_IF_ERROR(check_successor(before->head, **head, before->crc));
    }
    before = *head;
  }
  return Status::ok();
}

Status check_object(const Stream& stream, const Entry& entry) {
  const std::string key = data_key(entry.object());
  BL_ASSIGN_OR_RETURN(const auto data, stream.objects().get(key, {}, {}));
  if (!data) return Status::corruption(key + " is missing");
  if (data->bytes.size() == entry.size_bytes &&
      as_text(data->bytes) == content_of(entry.producer, entry.seq)) {
    return Status::ok();
  }
  return Status::corruption(key + " has another content");
}

// Per producer the numbers are 0, 1, 2, ...; from 0 again where a finished producer came back.
Status check_sequence(const std::vector<Entry>& entries) {
  std::map<std::string, const Entry*> last;
  for (const Entry& entry : entries) {
    const Entry*& before = last[entry.producer];
    const bool goes_on =
        before != nullptr && entry.seq == before->seq + 1 && entry.term >= before->term;
    const bool begins = entry.seq == Seq(0) && (before == nullptr || entry.term > before->term);
    if (!goes_on && !begins) {
      return Status::corruption(fmt::format("batch {} of {} in term {} stands after {}",
                                            entry.seq.value, entry.producer, entry.term.value,
                                            before == nullptr ? -1 : int(before->seq.value)));
    }
    before = &entry;
  }
  return Status::ok();
}

Status check_states(const Stream& stream, const Head& head) {
  for (const ProducerRow& row : head.producers) {
    if (!row.state.ref) continue;
    const std::string key = data_key(row.state_object());
    BL_ASSIGN_OR_RETURN(const auto data, stream.objects().get(key, {}, {}));
    if (!data) return Status::corruption(key + " is missing");
    BL_RETURN_IF_ERROR(decode_state(stream.uuid(), row, data->bytes).status());
  }
  return Status::ok();
}

Status check_membership_keys(const Stream& stream, const Head& head) {
  for (const MembershipRow& row : head.memberships) {
    if (!row.ref) continue;
    const std::string key = data_key(row.object());
    BL_ASSIGN_OR_RETURN(const auto data, stream.objects().get(key, {}, {}));
    if (!data) return Status::corruption(key + " is missing");
    BL_RETURN_IF_ERROR(decode_membership(stream.uuid(), row, data->bytes).status());
  }
  return Status::ok();
}

}  // namespace

Status SeededRuntime::sleep_until(const CallOptions& call) {
  if (call.stop.stop_requested()) return Status::cancelled("a stop was requested");
  now_ = std::max(now_, call.deadline);
  return Status::ok();
}

std::unique_ptr<Task> SeededRuntime::spawn(std::string name, std::function<void(std::stop_token)>) {
  BL_CHECK(false, "SeededRuntime does not spawn " + name);
  return nullptr;
}

std::unique_ptr<Event> SeededRuntime::make_event() {
  BL_CHECK(false, "SeededRuntime waits for nothing");
  return nullptr;
}

Status SeededRuntime::check(const CallOptions& call) {
  if (call.stop.stop_requested()) return Status::cancelled("a stop was requested");
  if (call.deadline <= now_) return Status::unavailable("the deadline passed");
  return Status::ok();
}

Limits tiny_limits() {
  Limits limits;
  limits.tail_entries = 3;
  limits.arity = 2;
  limits.inline_state_max_bytes = 8;
  limits.inline_membership_max_bytes = 8;
  limits.slots_kept = 4;
  return limits;
}

StoreTest::StoreTest(const Limits& limits, std::uint64_t seed)
    : runtime_(seed), memory_(runtime_), objects_(memory_) {
  BL_CHECK(init_stream(other_deps(), "test", {}).is_ok(), "a store in memory takes a stream");
  stream_ = open_stream({.limits = limits, .safeguards = {}});
  other_ = Stream::open(other_deps(), {.limits = limits, .safeguards = {}}, {}).value();
  objects_.forget_requests();
}

void StoreTest::TearDown() {
  EXPECT_TRUE(objects_.script_is_done()) << "the script was not played";
}

std::unique_ptr<Stream> StoreTest::open_stream(const StreamOptions& options) {
  return Stream::open(deps(), options, {}).value();
}

bool StoreTest::exists(std::string_view key) {
  return memory_.head(key, {}).value().has_value();
}

std::vector<std::string> StoreTest::keys(std::string_view prefix) {
  const auto listing = memory_.list(prefix, "", {}).value();
  std::vector<std::string> found;
  for (auto page = listing->next_page({}).value(); !page.empty();
       page = listing->next_page({}).value()) {
    for (const objstore::ListedObject& object : page) found.push_back(object.key);
  }
  std::ranges::sort(found);
  return found;
}

HeadPtr newest(const Stream& stream) {
  return ManifestReader(stream).latest({}).value();
}

Head empty_successor(const Stream& stream, const Head& head) {
  Head next = head;
  next.slot = head.slot + 1;
  next.txid = stream.random_txid();
  next.writer = {};
  return next;
}

void append_slots(const Stream& stream, std::uint64_t count) {
  ManifestReader reader(stream);
  HeadPtr head = reader.latest({}).value();
  for (; count > 0; --count) {
    const auto outcome = write_slot(stream, reader, *head, empty_successor(stream, head->head), {});
    BL_CHECK(outcome.value() == SlotOutcome::kCommitted, "nobody else writes");
    head = reader.cached();
  }
}

void remove_slots(const Stream& stream, Slot floor) {
  const Slot raised = raise_floor(stream, floor, {}).value();
  std::vector<std::string> gone;
  for (Slot slot(1); slot <= raised; ++slot) gone.push_back(manifest_key(slot));
  BL_CHECK(stream.objects().remove(gone, {}).is_ok(), "slots can be removed");
}

void put_head(const Stream& stream, const Head& head) {
  const Encoded encoded = encode_head(stream.uuid(), head);
  const auto reply = objstore::put_bytes(stream.objects(), manifest_key(head.slot), encoded.bytes,
                                         objstore::PutCondition::none(), {});
  BL_CHECK(reply.is_ok(), "a head can be put");
}

std::unique_ptr<ProducerSession> open_session(const Stream& stream, const std::string& producer) {
  return ProducerSession::open(stream, producer, {}).value();
}

std::string content_of(const std::string& producer, Seq seq) {
  return fmt::format("batch {} of {}", seq.value, producer);
}

PendingBatch upload_batch(ProducerSession& session, Seq seq, std::string_view state,
                          std::uint32_t steps) {
  const std::string text = content_of(session.producer(), seq);
  const ByteSpan bytes = as_bytes(text);
  PendingBatch batch = session
                           .upload({.seq = seq, .steps = steps, .ranks = 2, .run_table = {}},
                                   std::span(&bytes, 1), {})
                           .value();
  batch.state_after = to_bytes(state);
  return batch;
}

CommitReceipt commit_batches(ProducerSession& session, Seq first, std::uint64_t count) {
  std::vector<PendingBatch> batches;
  for (Seq seq = first; seq < first + count; ++seq) {
    batches.push_back(upload_batch(session, seq, std::to_string(seq.value)));
  }
  return session.commit(batches, {}).value();
}

Result<StreamContent> read_whole_stream(const Stream& stream) {
  ManifestReader reader(stream);
  StreamContent content;
  BL_ASSIGN_OR_RETURN(content.head, reader.latest({}));
  const Head& head = content.head->head;
  BL_RETURN_IF_ERROR(check_chain(stream, reader, head.slot));
  SegmentReader segments(stream);
  for (Step step = head.first_step; step < head.next_step;) {
    BL_ASSIGN_OR_RETURN(Entry entry, segments.find(head, step, {}));
    if (entry.first_step > step || entry.end_step() <= step) {
      return Status::internal(fmt::format("step {} was looked for, not found", step.value));
    }
    step = entry.end_step();
    content.entries.push_back(std::move(entry));
  }
  for (std::size_t i = 1; i < content.entries.size(); ++i) {
    if (content.entries[i].first_step != content.entries[i - 1].end_step()) {
      return Status::corruption("entries are not dense");
    }
  }
  for (const Entry& entry : content.entries) BL_RETURN_IF_ERROR(check_object(stream, entry));
  BL_RETURN_IF_ERROR(check_sequence(content.entries));
  BL_RETURN_IF_ERROR(check_states(stream, head));
  BL_RETURN_IF_ERROR(check_membership_keys(stream, head));
  return content;
}

}  // namespace batchloom::store
