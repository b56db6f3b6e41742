// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/handmade_stream_testing.h"

#include <algorithm>

#include "batchloom/simulator/membership_keys.h"
#include "batchloom/simulator/source_state.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/pin_codec.h"
#include "batchloom/store/trim.h"

namespace batchloom::simulator {

using store::Entry;
using store::Head;
using store::ProducerRow;
using store::Segment;
using store::SegmentRef;
using store::Slot;
using store::Step;
using store::Term;

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

Bytes encode_body(const BatchBody& body) {
  const ByteSpan name = as_bytes(body.producer);
  Bytes bytes(2 * kWord + name.size());
  store_le(body.from, bytes.data());
  store_le(body.to, bytes.data() + kWord);
  std::ranges::copy(name, bytes.begin() + 2 * kWord);
  return bytes;
}

Result<BatchBody> HandmadeBodies::inspect(const store::StreamUuid& /*stream*/,
                                          const Entry& /*entry*/, const SharedBytes& object) const {
  const ByteSpan bytes = *object;
  if (bytes.size() < 2 * kWord) return Status::corruption("not a batch");
  return BatchBody{.producer = std::string(as_text(bytes.subspan(2 * kWord))),
                   .from = load_le<std::uint64_t>(bytes.data()),
                   .to = load_le<std::uint64_t>(bytes.data() + kWord)};
}

store::Limits handmade_limits() {
  store::Limits limits;
  limits.tail_entries = 4;
  limits.arity = 2;
  return limits;
}

HandmadeStream::HandmadeStream() {
  history_.watch(objects_);
  put(store::kFormatKey, store::encode_format({uuid_, "test"}));
  Head genesis;
  genesis.slot = Slot(1);
  commit(genesis);
  put_floor(0);
}

void HandmadeStream::put(std::string_view key, const Bytes& bytes) {
  objects_.apply_put(key, objstore::make_memory_object(bytes), objstore::PutCondition::none());
  history_.on_put(key, bytes);
}

void HandmadeStream::remove(std::string_view key) {
  objects_.erase(key);
  history_.on_remove(key);
}

void HandmadeStream::put_floor(std::uint64_t slot) {
  put(store::kFloorKey, store::encode_floor(uuid_, Slot(slot)));
}

Head HandmadeStream::next(const std::string& writer) const {
  Head next = head();
  next.slot = head().slot + 1;
  ProducerRow* row = next.find_producer(writer);
  next.writer = {writer, row == nullptr ? Term(next.slot.value) : row->term};
  if (row != nullptr) row->last_slot = next.slot;
  return next;
}

Head HandmadeStream::fence(const std::string& producer) const {
  Head next = this->next(producer);
  if (next.find_producer(producer) == nullptr) {
    const auto place =
        std::ranges::lower_bound(next.producers, producer, {}, &ProducerRow::producer);
    next.producers.insert(place, ProducerRow())->producer = producer;
  }
  ProducerRow& row = *next.find_producer(producer);
  row.term = Term(next.slot.value);
  row.last_slot = next.slot;
  row.finished = false;
  next.writer.term = row.term;
  return next;
}

Head HandmadeStream::edit() const {
  Head next = head();
  next.slot = head().slot + 1;
  next.writer = {};
  return next;
}

Head HandmadeStream::intent(std::uint64_t step) const {
  Head next = edit();
  next.trim_intent = store::TrimIntent{.step = Step(step), .slot = next.slot};
  return next;
}

Head HandmadeStream::trim(std::uint64_t step) const {
  Head next = store::complete_trim(head(), Step(step), {});
  next.writer = {};
  return next;
}

Head HandmadeStream::membership(const std::string& producer, std::uint64_t step,
                                std::uint64_t keys) {
  Head next = edit();
  const ProducerRow& setter = *next.find_producer(producer);
  const store::MembershipDigest digest{.high = 0, .low = keys};
  const store::Encoded object = store::encode_membership(uuid_, membership_keys(digest));
  store::MembershipRow row{
      .from_step = Step(step),
      .digest = digest,
      .producer = producer,
      .term = setter.term,
      .inline_keys = {},
      .ref = store::MembershipRef{.seq = setter.next_seq,
                                  .nonce = next_nonce(),
                                  .size_bytes = static_cast<std::uint32_t>(object.bytes.size()),
                                  .crc = object.crc}};
  put(store::data_key(row.object()), object.bytes);
  std::erase_if(next.memberships,
                [&](const store::MembershipRow& old) { return old.from_step == row.from_step; });
  next.memberships.insert(std::ranges::upper_bound(next.memberships, row.from_step, {},
                                                   &store::MembershipRow::from_step),
                          row);
  return next;
}

Head HandmadeStream::batch(const std::string& producer, std::uint64_t records) {
  Head next = this->next(producer);
  const std::uint64_t from = history_.consumed(producer);
  add_batch(next, {.producer = producer, .from = from, .to = from + records});
  return next;
}

void HandmadeStream::add_batch(Head& next, const BatchBody& body) {
  const Bytes bytes = encode_body(body);
  ProducerRow& row = *next.find_producer(next.writer.producer);
  Entry entry;
  entry.first_step = next.next_step;
  entry.producer = row.producer;
  entry.term = row.term;
  entry.seq = row.next_seq;
  entry.nonce = next_nonce();
  entry.size_bytes = bytes.size();
  put(store::data_key(entry.object()), bytes);
  next.next_step = entry.end_step();
  next.tail.push_back(entry);
  ++row.next_seq;
  row.state = {.inline_bytes = encode_source_state(body.to, 0), .ref = {}};
}

void HandmadeStream::move_state_beside(Head& next, const std::string& producer) {
  ProducerRow& row = *next.find_producer(producer);
  const store::Encoded object = store::encode_state(uuid_, row.state.inline_bytes);
  row.state = {.inline_bytes = {},
               .ref = store::StateRef{.term = row.term,
                                      .seq = row.next_seq - 1,
                                      .nonce = next_nonce(),
                                      .size_bytes = static_cast<std::uint32_t>(object.bytes.size()),
                                      .crc = object.crc}};
  put(store::data_key(row.state_object()), object.bytes);
}

SegmentRef HandmadeStream::put_segment(Slot slot, const Segment& segment) {
  const store::Encoded object = store::encode_segment(uuid_, segment);
  const SegmentRef ref{.slot = slot,
                       .level = segment.level,
                       .nonce = next_nonce(),
                       .first_step = segment.first_step,
                       .size_bytes = static_cast<std::uint32_t>(object.bytes.size()),
                       .crc = object.crc};
  put(store::segment_key(ref.name()), object.bytes);
  return ref;
}

void HandmadeStream::seal_tail(Head& next) {
  const Segment leaf{.level = 0,
                     .first_step = next.tail.front().first_step,
                     .end_step = next.next_step,
                     .entries = std::move(next.tail),
                     .children = {}};
  next.tail.clear();
  if (next.segments.empty()) next.segments.emplace_back();
  next.segments[0].push_back(put_segment(next.slot, leaf));
}

void HandmadeStream::seal(const std::string& producer) {
  Head next = this->next(producer);
  seal_tail(next);
  const std::uint64_t from = history_.consumed(producer);
  add_batch(next, {.producer = producer, .from = from, .to = from + 1});
  commit(next);
}

void HandmadeStream::raise_level(Head& next, std::size_t level) {
  Segment parent{.level = static_cast<std::uint32_t>(level + 1),
                 .first_step = next.segments[level].front().first_step,
                 .end_step = next.tail.empty() ? next.next_step : next.tail.front().first_step,
                 .entries = {},
                 .children = std::move(next.segments[level])};
  next.segments[level].clear();
  if (next.segments.size() == level + 1) next.segments.emplace_back();
  next.segments[level + 1].push_back(put_segment(next.slot, parent));
}

void HandmadeStream::commit_on(Head next, std::uint32_t previous_crc) {
  next.previous_crc = previous_crc;
  put(store::manifest_key(next.slot), store::encode_head(uuid_, next).bytes);
}

std::uint32_t HandmadeStream::crc_of(Slot slot) const {
  const SlotFacts* facts = history_.slot(slot);
  return facts == nullptr ? 0 : facts->crc;
}

store::Pin HandmadeStream::pin(std::uint64_t step) {
  const store::Pin pin{.name = {.group = "g", .id = "c", .nonce = next_nonce()},
                       .step = Step(step)};
  put(store::pin_key(pin.name), store::encode_pin(uuid_, pin));
  return pin;
}

void HandmadeStream::put_cursor(std::uint64_t keep_from, std::uint64_t counter, bool closed) {
  const store::LiveCursor cursor{.group = "g",
                                 .keep_from = Step(keep_from),
                                 .cursor = Step(keep_from + counter),
                                 .counter = counter,
                                 .closed = closed};
  history_.cursor_opening("g", cursor.keep_from);
  history_.group_reached("g", cursor.cursor);
  put_cursor(cursor);
}

void HandmadeStream::put_cursor(const store::LiveCursor& cursor) {
  put(store::live_cursor_key(cursor.group),
      store::encode_live_cursor(uuid_, {.cursor = cursor, .nonce = next_nonce()}));
}

testing::AssertionResult HandmadeStream::is_right() const {
  if (violations_.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << violations_.texts().front();
}

testing::AssertionResult HandmadeStream::breaks_only(std::string_view rule,
                                                     std::string_view reason) const {
  bool found = false;
  for (const std::string& text : violations_.texts()) {
    if (!text.starts_with(std::string(rule) + ": "))
      return testing::AssertionFailure() << "instead of " << rule << ": " << text;
    found = found || text.find(reason) != std::string::npos;
  }
  if (found) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "nothing says '" << reason << "' but "
         << (violations_.empty() ? "there is no complaint" : violations_.texts().front());
}

}  // namespace batchloom::simulator
