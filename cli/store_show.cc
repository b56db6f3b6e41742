// SPDX-License-Identifier: Apache-2.0
// `batchloom store show`
#include <fmt/format.h>

#include <ranges>

#include "batchloom/store/manifest_reader.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

std::string crc_text(std::uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

Fields describe(const store::ProducerRow& row) {
  Fields fields;
  fields.add("producer", row.producer)
      .add("term", row.term.value)
      .add("next_seq", row.next_seq.value)
      .add("last_slot", row.last_slot.value)
      .add("finished", row.finished);
  if (row.state.ref) {
    fields.add("state_key", store::data_key(row.state_object()))
        .add("state_object_bytes", std::uint64_t{row.state.ref->size_bytes})
        .add("state_crc", crc_text(row.state.ref->crc));
  } else {
    fields.add_hex("state", row.state.inline_bytes);
  }
  return fields;
}

Fields describe(const store::SegmentRef& ref) {
  Fields fields;
  fields.add("level", std::uint64_t{ref.level})
      .add("first_step", ref.first_step.value)
      .add("bytes", std::uint64_t{ref.size_bytes})
      .add("crc", crc_text(ref.crc))
      .add("key", store::segment_key(ref.name()));
  return fields;
}

Fields describe(const store::TopologyRow& row) {
  Fields fields;
  fields.add("from_step", row.from_step.value)
      .add("ranks", std::uint64_t{row.ranks})
      .add("axes", row.axes);
  return fields;
}

Fields describe_fully(const store::MembershipRow& row) {
  Fields fields = describe_membership(row);
  if (row.ref) {
    fields.add("keys_key", store::data_key(row.object())).add("keys_crc", crc_text(row.ref->crc));
  } else {
    fields.add_hex("keys", row.inline_keys);
  }
  return fields;
}

/// What events and trims have left in the head; what none has is left out.
void add_events(Fields& fields, const store::Head& head) {
  if (head.trim_intent) {
    fields.add("trim_intent", head.trim_intent->step.value)
        .add("trim_intent_slot", head.trim_intent->slot.value);
  }
  if (head.ended) fields.add("ended", head.ended);
  if (!head.topologies.empty()) {
    std::vector<Fields> topologies;
    for (const store::TopologyRow& row : head.topologies) topologies.push_back(describe(row));
    fields.add("topologies", std::span<const Fields>(topologies));
  }
  if (!head.memberships.empty()) {
    std::vector<Fields> memberships;
    for (const store::MembershipRow& row : head.memberships) {
      memberships.push_back(describe_fully(row));
    }
    fields.add("memberships", std::span<const Fields>(memberships));
  }
  if (!head.skipped.empty()) {
    std::vector<std::uint64_t> skipped;
    for (const store::Step step : head.skipped) skipped.push_back(step.value);
    fields.add("skipped", std::span<const std::uint64_t>(skipped));
  }
}

Fields describe_fully(const store::Entry& entry) {
  Fields fields = describe_entry(entry);
  fields.add_hex("run_table", entry.run_table);
  return fields;
}

Fields describe(const store::StoredHead& stored) {
  const store::Head& head = stored.head;
  std::vector<Fields> producers;
  for (const store::ProducerRow& row : head.producers) producers.push_back(describe(row));
  std::vector<Fields> segments;  // In step order.
  for (const auto& level : head.segments | std::views::reverse) {
    for (const store::SegmentRef& ref : level) segments.push_back(describe(ref));
  }
  std::vector<Fields> tail;
  for (const store::Entry& entry : head.tail) tail.push_back(describe_fully(entry));
  Fields fields;
  fields.add("slot", head.slot.value)
      .add("key", store::manifest_key(head.slot))
      .add("crc", crc_text(stored.crc))
      .add("previous_crc", crc_text(head.previous_crc))
      .add("txid", fmt::format("{:016x}{:016x}", head.txid.high, head.txid.low))
      .add("writer", head.writer.producer)
      .add("writer_term", head.writer.term.value);
  if (head.first_step > store::Step(0)) fields.add("first_step", head.first_step.value);
  fields.add("next_step", head.next_step.value);
  add_events(fields, head);
  fields.add("producers", std::span<const Fields>(producers))
      .add("segments", std::span<const Fields>(segments))
      .add("tail", std::span<const Fields>(tail));
  return fields;
}

Result<store::HeadPtr> find_head(store::ManifestReader& reader, std::optional<store::Slot> slot,
                                 const CallOptions& call) {
  if (!slot) return reader.latest(call);
  BL_ASSIGN_OR_RETURN(const std::optional<store::HeadPtr> head, reader.at(*slot, call));
  if (head) return *head;
  return Status::not_found(
      fmt::format("slot {} was not written yet, or lies below the floor and "
                  "was removed; `batchloom store verify` prints both bounds",
                  slot->value));
}

}  // namespace

Status run(const StoreShow& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, find_head(reader, args.slot, call));
  if (args.step) return show_step(args, *stream, head->head, call);
  print_result(describe(*head), args.stream.json);
  return Status::ok();
}

}  // namespace batchloom::cli
