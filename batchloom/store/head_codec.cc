// SPDX-License-Identifier: Apache-2.0
// Heads. What a decoded head promises, beyond the rows' own rules (codec_rows.cc):
//
//   1. It is the head of the slot in its key; only genesis, slot 1, has no previous CRC.
//   2. Writer and producer rows have valid names, rows in ascending order; 1 <= term <= last_slot
//      <= slot; a state stands inline or by reference, never both.
//   3. first_step <= next_step. From the highest level down to the tail, segments and entries
//      begin at ever later steps; the tail is dense and ends at next_step; the oldest row begins at
//      or before first_step, so that every step in [first_step, next_step) is found.
//   4. Topologies begin at ever later steps, up to next_step, and their axes have that many HDP
//      ranks; memberships begin at ever later steps, with 1 <= term <= slot and keys that stand
//      inline or by reference, never both; skipped steps ascend within [first_step, next_step); a
//      trim intent is of a slot from 2 to this one (event_rows.cc).
#include <fmt/format.h>

#include "batchloom/store/codec.h"
#include "batchloom/store/codec_rows.h"
#include "batchloom/store/manifest_generated.h"

namespace batchloom::store {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<TableVector<fb::ProducerRow>> encode_producers(FlatBufferBuilder& builder,
                                                      const NameTable& names,
                                                      const std::vector<ProducerRow>& producers) {
  std::vector<Offset<fb::ProducerRow>> rows;
  rows.reserve(producers.size());
  for (const ProducerRow& producer : producers) {
    const auto inline_state = encode_bytes(builder, producer.state.inline_bytes);
    fb::ProducerRowBuilder row(builder);
    if (producer.state.ref) {
      const StateRef& ref = *producer.state.ref;
      const fb::StateRef state_ref(ref.term.value, ref.seq.value, ref.nonce.value, ref.size_bytes,
                                   ref.crc);
      row.add_state_ref(&state_ref);
    }
    row.add_term(producer.term.value);
    row.add_next_seq(producer.next_seq.value);
    row.add_last_slot(producer.last_slot.value);
    row.add_producer(names.index(producer.producer));
    row.add_inline_state(inline_state);
    row.add_finished(producer.finished);
    rows.push_back(row.Finish());
  }
  return builder.CreateVector(rows);
}

Offset<TableVector<fb::SegmentLevel>> encode_levels(
    FlatBufferBuilder& builder, const std::vector<std::vector<SegmentRef>>& segments) {
  std::vector<Offset<fb::SegmentLevel>> levels;
  levels.reserve(segments.size());
  for (const std::vector<SegmentRef>& refs : segments) {
    levels.push_back(fb::CreateSegmentLevel(builder, encode_refs(builder, refs)));
  }
  return builder.CreateVector(levels);
}

/// Turns the verified table into a Head, part by part; stops at the first broken rule.
class HeadDecoder {
 public:
  HeadDecoder(const Origin& origin, Slot slot, const fb::Head& table)
      : origin_(origin), slot_(slot), table_(table) {}

  Result<Head> decode() {
    BL_RETURN_IF_ERROR(decode_scalars());
    BL_RETURN_IF_ERROR(decode_writer());
    BL_ASSIGN_OR_RETURN(const DecodedNames names, DecodedNames::decode(origin_, *table_.names()));
    BL_RETURN_IF_ERROR(decode_producers(names));
    BL_RETURN_IF_ERROR(decode_levels());
    BL_ASSIGN_OR_RETURN(head_.tail, decode_entries(origin_, names, slot_, *table_.tail()));
    BL_RETURN_IF_ERROR(check_order());
    BL_RETURN_IF_ERROR(decode_events(names));
    return std::move(head_);
  }

 private:
  Status decode_scalars();
  Status decode_writer();
  Status decode_producers(const DecodedNames& names);
  Status decode_state(const fb::ProducerRow& row, ProducerRow& producer) const;
  Status decode_levels();
  Status check_order() const;
  Status decode_events(const DecodedNames& names);

  const Origin& origin_;
  const Slot slot_;
  const fb::Head& table_;
  Head head_;
};

Status HeadDecoder::decode_scalars() {
  if (slot_.value == 0) return origin_.corrupt(&table_, "slots count from 1");
  if (table_.slot() != slot_.value) {
    return origin_.corrupt(
        &table_, fmt::format("is the head of slot {}, expected {}", table_.slot(), slot_.value));
  }
  if (slot_.value == 1 && table_.previous_crc() != 0) {
    return origin_.corrupt(&table_, "genesis follows another head");
  }
  if (table_.first_step() > table_.next_step()) {
    return origin_.corrupt(&table_, fmt::format("first step {} is above next step {}",
                                                table_.first_step(), table_.next_step()));
  }
  head_.slot = slot_;
  head_.previous_crc = table_.previous_crc();
  head_.txid = {.high = table_.txid()->high(), .low = table_.txid()->low()};
  head_.first_step = Step(table_.first_step());
  head_.next_step = Step(table_.next_step());
  return Status::ok();
}

Status HeadDecoder::decode_writer() {
  const flatbuffers::String& writer = *table_.writer();
  const std::string_view name(writer.c_str(), writer.size());
  const std::uint64_t term = table_.writer_term();
  if (name.empty() ? term != 0 : term == 0 || term > slot_.value || !is_name(name)) {
    return origin_.corrupt(&writer, fmt::format("writer of {} bytes with term {} in slot {}",
                                                name.size(), term, slot_.value));
  }
  head_.writer = {.producer = std::string(name), .term = Term(term)};
  return Status::ok();
}

Status HeadDecoder::decode_producers(const DecodedNames& names) {
  for (const fb::ProducerRow* row : *table_.producers()) {
    BL_ASSIGN_OR_RETURN(const std::string_view name, names.at(origin_, row, row->producer()));
    if (!head_.producers.empty() && name <= head_.producers.back().producer) {
      return origin_.corrupt(row, fmt::format("row of {} stands after that of {}", name,
                                              head_.producers.back().producer));
    }
    if (row->term() == 0 || row->term() > row->last_slot() || row->last_slot() > slot_.value) {
      return origin_.corrupt(row, fmt::format("{} has term {} and last slot {} in slot {}", name,
                                              row->term(), row->last_slot(), slot_.value));
    }
    ProducerRow& producer = head_.producers.emplace_back();
    producer.producer = name;
    producer.term = Term(row->term());
    producer.next_seq = Seq(row->next_seq());
    producer.last_slot = Slot(row->last_slot());
    producer.finished = row->finished();
    BL_RETURN_IF_ERROR(decode_state(*row, producer));
  }
  return Status::ok();
}

Status HeadDecoder::decode_state(const fb::ProducerRow& row, ProducerRow& producer) const {
  producer.state.inline_bytes = decode_bytes(row.inline_state());
  const fb::StateRef* ref = row.state_ref();
  if (ref == nullptr) return Status::ok();
  if (!producer.state.inline_bytes.empty()) {
    return origin_.corrupt(
        &row, fmt::format("{} has a state inline and by reference", producer.producer));
  }
  if (ref->term() == 0 || ref->term() > row.term()) {
    return origin_.corrupt(&row, fmt::format("{} of term {} has a state of term {}",
                                             producer.producer, row.term(), ref->term()));
  }
  producer.state.ref = StateRef{.term = Term(ref->term()),
                                .seq = Seq(ref->seq()),
                                .nonce = Nonce(ref->nonce()),
                                .size_bytes = ref->size_bytes(),
                                .crc = ref->crc()};
  return Status::ok();
}

Status HeadDecoder::decode_levels() {
  const auto& levels = *table_.levels();
  if (levels.size() > kMaxLevels) {
    return origin_.corrupt(
        &levels, fmt::format("has {} levels, at most {} can be", levels.size(), kMaxLevels));
  }
  for (std::uint32_t level = 0; level < levels.size(); ++level) {
    BL_ASSIGN_OR_RETURN(auto refs, decode_refs(origin_, level, slot_, *levels.Get(level)->refs()));
    head_.segments.push_back(std::move(refs));
  }
  return Status::ok();
}

/// From the newest row to the oldest, each begins before the limit that the one after it sets.
Status HeadDecoder::check_order() const {
  const auto& tail = head_.tail;
  if (!tail.empty() && tail.back().end_step() != head_.next_step) {
    return origin_.corrupt(table_.tail(),
                           fmt::format("tail ends at step {}, next step is {}",
                                       tail.back().end_step().value, head_.next_step.value));
  }
  Step oldest = tail.empty() ? head_.next_step : tail.front().first_step;
  for (std::uint32_t level = 0; level < head_.segments.size(); ++level) {
    const auto& refs = head_.segments[level];
    if (refs.empty()) continue;
    if (refs.back().first_step >= oldest) {
      return origin_.corrupt(table_.levels()->Get(level),
                             fmt::format("last segment of level {} begins at step {}, rows newer "
                                         "than it at {}",
                                         level, refs.back().first_step.value, oldest.value));
    }
    oldest = refs.front().first_step;
  }
  if (oldest > head_.first_step) {
    return origin_.corrupt(&table_, fmt::format("steps from {} are kept, rows begin at {}",
                                                head_.first_step.value, oldest.value));
  }
  return Status::ok();
}

Status HeadDecoder::decode_events(const DecodedNames& names) {
  BL_ASSIGN_OR_RETURN(head_.trim_intent, decode_trim_intent(origin_, slot_, table_.trim_intent()));
  head_.ended = table_.ended();
  BL_ASSIGN_OR_RETURN(head_.topologies,
                      decode_topologies(origin_, head_.next_step, *table_.topologies()));
  BL_ASSIGN_OR_RETURN(head_.memberships,
                      decode_memberships(origin_, names, slot_, *table_.memberships()));
  BL_ASSIGN_OR_RETURN(
      head_.skipped, decode_skipped(origin_, head_.first_step, head_.next_step, *table_.skipped()));
  return Status::ok();
}

}  // namespace

Encoded encode_head(const StreamUuid& uuid, const Head& head) {
  FlatBufferBuilder builder(std::size_t{32} << 10);
  builder.ForceDefaults(true);  // Every row takes the same space: encoded_bound counts on it.
  NameTable names;
  names.add(head.tail);
  for (const ProducerRow& row : head.producers) names.add(row.producer);
  for (const MembershipRow& row : head.memberships) names.add(row.producer);

  const auto tail = encode_entries(builder, names, head.tail);
  const auto levels = encode_levels(builder, head.segments);
  const auto producers = encode_producers(builder, names, head.producers);
  const auto encoded_names = names.encode(builder);
  const auto topologies = encode_topologies(builder, head.topologies);
  const auto memberships = encode_memberships(builder, names, head.memberships);
  const auto skipped = encode_steps(builder, head.skipped);
  const auto writer = builder.CreateString(head.writer.producer);
  const fb::Txid txid(head.txid.high, head.txid.low);
  const TrimIntent intent = head.trim_intent.value_or(TrimIntent());
  const fb::TrimIntent encoded_intent(intent.step.value, intent.slot.value);
  return finish_frame(
      ObjectKind::kHead, uuid, builder,
      fb::CreateHead(builder, head.slot.value, head.previous_crc, &txid, writer,
                     head.writer.term.value, head.first_step.value, head.next_step.value,
                     head.trim_intent ? &encoded_intent : nullptr, head.ended, topologies,
                     memberships, skipped, encoded_names, producers, levels, tail));
}

Result<StoredHead> decode_head(const StreamUuid& uuid, Slot slot, ByteSpan object) {
  const std::string key = manifest_key(slot);
  const FrameContext context{.key = key, .kind = ObjectKind::kHead, .uuid = &uuid};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Head>(context, frame.payload()));
  const Origin origin(context, frame.payload().data());
  BL_ASSIGN_OR_RETURN(Head head, HeadDecoder(origin, slot, *table).decode());
  return StoredHead{.head = std::move(head), .crc = frame.crc()};
}

}  // namespace batchloom::store
