// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/store_testing.h"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "batchloom/model/topology.h"

namespace batchloom::store {
namespace {

/// From `low` to `high`, both included.
std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
  return *rc::gen::inRange(low, high + 1);
}

std::uint64_t pick_any() {
  return *rc::gen::arbitrary<std::uint64_t>();
}

std::uint32_t pick_any32() {
  return *rc::gen::arbitrary<std::uint32_t>();
}

Bytes pick_bytes(std::size_t size) {
  return *rc::gen::container<Bytes>(
      size, rc::gen::map(rc::gen::arbitrary<std::uint8_t>(),
                         [](std::uint8_t value) { return std::byte{value}; }));
}

std::vector<std::string> pick_names(std::size_t most) {
  const auto names = *rc::gen::container<std::set<std::string>>(arbitrary_name());
  std::vector<std::string> picked(names.begin(), names.end());
  picked.resize(std::min(picked.size(), most));
  if (picked.empty()) picked.emplace_back("p");
  return picked;
}

Entry pick_entry(Slot slot, const std::vector<std::string>& names, Step first_step) {
  Entry entry;
  entry.first_step = first_step;
  entry.steps = static_cast<std::uint32_t>(pick(1, 8));
  entry.producer = names[pick(0, names.size() - 1)];
  entry.term = Term(pick(1, slot.value));
  entry.seq = Seq(pick_any());
  entry.nonce = Nonce(pick_any());
  entry.size_bytes = pick_any();
  entry.ranks = static_cast<std::uint32_t>(pick(0, 40));
  const std::uint64_t runs = std::uint64_t{entry.ranks} * entry.steps;
  if (runs <= kInlineRunRows && *rc::gen::arbitrary<bool>()) {
    entry.run_table = pick_bytes(16 * runs + 4 * entry.ranks);
  }
  return entry;
}

/// Dense from `step` on, which moves to their end.
std::vector<Entry> pick_entries(Slot slot, std::size_t least, Step& step) {
  const auto names = pick_names(4);
  std::vector<Entry> entries(pick(least, 20));
  for (Entry& entry : entries) {
    entry = pick_entry(slot, names, step);
    step = entry.end_step();
  }
  return entries;
}

/// In order from `step` on, which moves to their end.
std::vector<SegmentRef> pick_refs(Slot slot, std::uint32_t level, std::size_t least, Step& step) {
  std::vector<SegmentRef> refs(pick(least, 5));
  for (SegmentRef& ref : refs) {
    ref = {.slot = Slot(pick(1, slot.value)),
           .level = level,
           .nonce = Nonce(pick_any()),
           .first_step = step,
           .size_bytes = pick_any32(),
           .crc = pick_any32()};
    step = step + pick(1, 1000);
  }
  return refs;
}

ProducerState pick_state(Term term) {
  ProducerState state;
  if (*rc::gen::arbitrary<bool>()) {
    state.inline_bytes = pick_bytes(pick(0, 40));
  } else {
    state.ref = StateRef{.term = Term(pick(1, term.value)),
                         .seq = Seq(pick_any()),
                         .nonce = Nonce(pick_any()),
                         .size_bytes = pick_any32(),
                         .crc = pick_any32()};
  }
  return state;
}

std::vector<ProducerRow> pick_producers(Slot slot) {
  std::vector<ProducerRow> rows;
  for (const std::string& name : pick_names(pick(0, 8))) {
    ProducerRow& row = rows.emplace_back();
    row.producer = name;
    row.last_slot = Slot(pick(1, slot.value));
    row.term = Term(pick(1, row.last_slot.value));
    row.next_seq = Seq(pick_any());
    row.finished = *rc::gen::arbitrary<bool>();
    row.state = pick_state(row.term);
  }
  return rows;
}

model::Topology pick_topology() {
  std::vector<model::AxisExtent> axes;
  for (const auto axis : {model::Axis::kTp, model::Axis::kDp, model::Axis::kPp, model::Axis::kCp}) {
    const bool named = axis == model::Axis::kDp || *rc::gen::arbitrary<bool>();
    if (named) axes.push_back({axis, static_cast<std::uint32_t>(pick(1, 200))});
  }
  return model::Topology::create(std::move(axes)).value();
}

/// Up to `most` steps in [begin, end), ascending.
std::vector<Step> pick_steps(Step begin, Step end, std::uint64_t most) {
  std::set<Step> steps;
  for (std::uint64_t more = begin < end ? pick(0, most) : 0; more > 0; --more) {
    steps.insert(Step(pick(begin.value, end.value - 1)));
  }
  return {steps.begin(), steps.end()};
}

MembershipRow pick_membership(Slot slot, Step from_step) {
  MembershipRow row{.from_step = from_step,
                    .digest = {.high = pick_any(), .low = pick_any()},
                    .producer = *arbitrary_name(),
                    .term = Term(pick(1, slot.value)),
                    .inline_keys = {},
                    .ref = {}};
  if (*rc::gen::arbitrary<bool>()) {
    row.inline_keys = pick_bytes(pick(0, 40));
  } else {
    row.ref = MembershipRef{.seq = Seq(pick_any()),
                            .nonce = Nonce(pick_any()),
                            .size_bytes = static_cast<std::uint32_t>(pick(kFrameBytes, 1u << 24)),
                            .crc = pick_any32()};
  }
  return row;
}

/// Precondition: the head's slot and steps are set.
void pick_events(Head& head) {
  if (head.slot >= Slot(2) && *rc::gen::arbitrary<bool>()) {
    head.trim_intent = TrimIntent{.step = Step(pick_any()), .slot = Slot(pick(2, head.slot.value))};
  }
  head.ended = *rc::gen::arbitrary<bool>();
  head.skipped = pick_steps(head.first_step, head.next_step, 5);
  for (const Step from_step : pick_steps(Step(0), head.next_step + 1, 4)) {
    const model::Topology topology = pick_topology();
    head.topologies.push_back({from_step, topology.hdp_size(), to_string(topology)});
  }
  for (const Step from_step : pick_steps(Step(0), head.next_step + 100, 3)) {
    head.memberships.push_back(pick_membership(head.slot, from_step));
  }
}

Head pick_head() {
  Head head;
  head.slot = Slot(1 + pick_any() % (std::numeric_limits<std::uint64_t>::max() / 2));
  head.previous_crc = head.slot == Slot(1) ? 0 : pick_any32();
  head.txid = {.high = pick_any(), .low = pick_any()};
  if (*rc::gen::arbitrary<bool>()) {
    head.writer = {.producer = *arbitrary_name(), .term = Term(pick(1, head.slot.value))};
  }
  head.producers = pick_producers(head.slot);
  const Step oldest(pick(0, 100'000));
  Step step = oldest;
  head.segments.resize(pick(0, 5));
  for (std::size_t level = head.segments.size(); level-- > 0;) {
    head.segments[level] = pick_refs(head.slot, static_cast<std::uint32_t>(level), 0, step);
  }
  head.tail = pick_entries(head.slot, 0, step);
  head.next_step = step;
  head.first_step = Step(pick(oldest.value, step.value));
  pick_events(head);
  return head;
}

Segment pick_segment(std::uint32_t level, Slot slot) {
  Segment segment{.level = level,
                  .first_step = Step(pick(0, 100'000)),
                  .end_step = {},
                  .entries = {},
                  .children = {}};
  segment.end_step = segment.first_step;
  if (level == 0) {
    segment.entries = pick_entries(slot, 1, segment.end_step);
  } else {
    segment.children = pick_refs(slot, level - 1, 1, segment.end_step);
  }
  return segment;
}

Entry small_entry(Step first_step, std::uint32_t steps, const std::string& producer) {
  return {.first_step = first_step,
          .steps = steps,
          .producer = producer,
          .term = Term(3),
          .seq = Seq(first_step.value),
          .nonce = Nonce(0xabcdef0123456789),
          .size_bytes = 5'000'000,
          .ranks = 2,
          .run_table = Bytes(2 * (16 * std::size_t{steps} + 4), std::byte{7})};
}

}  // namespace

rc::Gen<std::string> arbitrary_name() {
  return rc::gen::exec([] {
    static const std::string kStart = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::string name(1, *rc::gen::elementOf(kStart));
    const std::size_t more = *rc::gen::weightedOneOf<std::size_t>(
        {{9, rc::gen::inRange<std::size_t>(0, 12)}, {1, rc::gen::just<std::size_t>(62)}});
    name += *rc::gen::container<std::string>(more, rc::gen::elementOf(kStart + "-_"));
    return name;
  });
}

rc::Gen<DataName> arbitrary_data_name() {
  return rc::gen::exec([] {
    return DataName{
        .kind = *rc::gen::element(DataKind::kBatch, DataKind::kState, DataKind::kMembership),
        .producer = *arbitrary_name(),
        .term = Term(pick_any()),
        .seq = Seq(pick_any()),
        .nonce = Nonce(pick_any())};
  });
}

rc::Gen<Head> arbitrary_head() {
  return rc::gen::exec(pick_head);
}

rc::Gen<Segment> arbitrary_segment(std::uint32_t level, Slot slot) {
  return rc::gen::exec([level, slot] { return pick_segment(level, slot); });
}

model::Topology topology_of(std::string_view axes) {
  return model::Topology::parse(axes).value();
}

StreamUuid test_uuid(std::uint64_t number) {
  StreamUuid uuid;
  store_le(number, uuid.bytes.data());
  store_le(~number, uuid.bytes.data() + 8);
  return uuid;
}

Head small_head() {
  Head head;
  head.slot = Slot(9);
  head.previous_crc = 0xfeedbeef;
  head.txid = {.high = 1, .low = 2};
  head.writer = {.producer = "beta", .term = Term(4)};
  head.first_step = Step(7);
  head.next_step = Step(16);
  head.trim_intent = TrimIntent{.step = Step(20), .slot = Slot(8)};
  head.ended = true;
  head.topologies = {{Step(2), 2, "dp=2"}, {Step(12), 2, "pp=3 dp=1 cp=2 tp=4"}};
  head.memberships = {{.from_step = Step(0),
                       .digest = {.high = 1, .low = 2},
                       .producer = "old",
                       .term = Term(2),
                       .inline_keys = to_bytes("keys"),
                       .ref = {}},
                      {.from_step = Step(14),
                       .digest = {.high = 3, .low = 4},
                       .producer = "beta",
                       .term = Term(4),
                       .inline_keys = {},
                       .ref = MembershipRef{Seq(1), Nonce(78), 6000, 7}}};
  head.skipped = {Step(8), Step(13)};
  head.producers = {
      {.producer = "alpha",
       .term = Term(3),
       .next_seq = Seq(13),
       .last_slot = Slot(8),
       .finished = true,
       .state = {.inline_bytes = to_bytes("cursor"), .ref = {}}},
      {.producer = "beta",
       .term = Term(4),
       .next_seq = Seq(2),
       .last_slot = Slot(9),
       .finished = false,
       .state = {.inline_bytes = {}, .ref = StateRef{Term(4), Seq(1), Nonce(77), 5000, 6}}}};
  head.segments = {
      {{Slot(7), 0, Nonce(21), Step(6), 4000, 31}, {Slot(8), 0, Nonce(22), Step(8), 4001, 32}},
      {{Slot(6), 1, Nonce(20), Step(2), 3999, 30}}};
  head.tail = {small_entry(Step(10), 2, "alpha"), small_entry(Step(12), 4, "old")};
  return head;
}

Segment small_segment() {
  return {.level = 0,
          .first_step = Step(10),
          .end_step = Step(16),
          .entries = {small_entry(Step(10), 2, "alpha"), small_entry(Step(12), 4, "old")},
          .children = {}};
}

SegmentRef reference_to(const Segment& segment, const Encoded& encoded, Slot slot) {
  return {.slot = slot,
          .level = segment.level,
          .nonce = Nonce(0x1234),
          .first_step = segment.first_step,
          .size_bytes = static_cast<std::uint32_t>(encoded.bytes.size()),
          .crc = encoded.crc};
}

}  // namespace batchloom::store
