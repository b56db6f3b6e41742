// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/edit_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace batchloom::simulator {
namespace {

using store::Entry;
using store::Head;
using store::MembershipRow;
using store::SegmentRef;
using store::Step;
using store::TopologyRow;

/// The levels without the segments that end at or below `first_step`. Each ends where the one after
/// it begins: of its level, of the levels below, or the tail.
std::vector<std::vector<SegmentRef>> needed_segments(const Head& head, Step first_step) {
  std::vector<std::vector<SegmentRef>> needed = head.segments;
  Step end = head.tail.empty() ? head.next_step : head.tail.front().first_step;
  for (std::vector<SegmentRef>& level : needed) {
    std::vector<SegmentRef> kept;
    for (auto ref = level.rbegin(); ref != level.rend(); ++ref) {
      if (end > first_step) kept.insert(kept.begin(), *ref);
      end = ref->first_step;
    }
    level = kept;
  }
  while (!needed.empty() && needed.back().empty()) needed.pop_back();
  return needed;
}

/// Those of `rows`, which each hold until the next one, that hold for `first_step` or a later one.
template <class Row>
std::vector<Row> needed_rows(const std::vector<Row>& rows, Step first_step) {
  std::vector<Row> needed;
  for (const Row& row : rows) {
    if (row.from_step <= first_step) needed.clear();
    needed.push_back(row);
  }
  return needed;
}

template <class Row>
std::vector<Row> rows_below(const std::vector<Row>& rows, Step step) {
  std::vector<Row> below;
  for (const Row& row : rows) {
    if (row.from_step < step) below.push_back(row);
  }
  return below;
}

class EditRules {
 public:
  EditRules(const Head& before, const Head& after, Violations& violations)
      : before_(before), after_(after), violations_(violations) {}

  void check() {
    if (after_.first_step < before_.first_step) {
      fail("I11", fmt::format("the first step fell from {} to {}", before_.first_step.value,
                              after_.first_step.value));
    }
    if (after_.writer.producer.empty()) {
      check_by_nobody();
    } else {
      check_by_producer();
    }
  }

 private:
  void fail(std::string_view rule, std::string_view text) {
    violations_.add(rule, fmt::format("slot {}: {}", after_.slot.value, text));
  }

  void check_by_producer() {
    const std::string who = fmt::format("by producer {}", after_.writer.producer);
    if (after_.first_step > before_.first_step) fail("I11", "the first step was moved " + who);
    if (after_.trim_intent != before_.trim_intent) fail("I12", "an intent was changed " + who);
    if (after_.ended != before_.ended) fail("I15", "the stream was ended or reopened " + who);
    if (after_.topologies != before_.topologies) fail("I15", "the topology was changed " + who);
    if (after_.memberships != before_.memberships) fail("I15", "memberships were changed " + who);
    if (after_.skipped != before_.skipped) fail("I15", "what is skipped was changed " + who);
    const TopologyRow* topology = before_.topologies.empty() ? nullptr : &before_.topologies.back();
    for (const Entry& entry : after_.tail) {
      if (entry.first_step < before_.next_step) continue;
      if (before_.ended) {
        fail("I15", fmt::format("step {} was appended to an ended stream", entry.first_step.value));
      }
      if (topology != nullptr && topology->ranks != entry.ranks) {
        fail("I15", fmt::format("step {} is for {} ranks, the topology has {}",
                                entry.first_step.value, entry.ranks, topology->ranks));
      }
    }
  }

  /// Whatever changed first, in this order, is what the slot did; the rest must be as before.
  void check_by_nobody() {
    Head made = before_;
    made.slot = after_.slot;
    made.previous_crc = after_.previous_crc;
    made.txid = after_.txid;
    made.writer = after_.writer;
    if (made == after_) return fail("I8", "written by nobody, and changes nothing");
    if (after_.trim_intent != before_.trim_intent) {
      made.trim_intent = after_.trim_intent;
      if (after_.trim_intent) {
        check_intent();
      } else {
        check_trim(made);
      }
    } else if (after_.first_step > before_.first_step) {
      return fail("I12", fmt::format("the first step rose from {} to {}, but no intent went",
                                     before_.first_step.value, after_.first_step.value));
    } else if (after_.skipped != before_.skipped) {
      check_skip();
      made.skipped = after_.skipped;
    } else if (after_.topologies != before_.topologies) {
      check_topology();
      made.topologies = after_.topologies;
    } else if (after_.memberships != before_.memberships) {
      check_membership();
      made.memberships = after_.memberships;
    } else {
      made.ended = after_.ended;
    }
    made.first_step = std::min(made.first_step, after_.first_step);  // A fall was told already.
    if (made != after_) fail("I8", "written by nobody, and changes more than one thing");
  }

  void check_intent() {
    if (after_.trim_intent->slot == after_.slot) return;
    fail("I12",
         fmt::format("a trim is announced as if by slot {}", after_.trim_intent->slot.value));
  }

  /// The intent went: withdrawn, or its trim was completed.
  void check_trim(Head& made) {
    const Step first_step = after_.first_step;
    if (first_step > before_.first_step && first_step > before_.trim_intent->step) {
      fail("I12", fmt::format("the first step rose to {}, but a trim to {} was announced",
                              first_step.value, before_.trim_intent->step.value));
    }
    const Step last_step = before_.next_step - std::min<std::uint64_t>(before_.next_step.value, 1);
    std::vector<Entry> tail = before_.tail;
    std::erase_if(tail, [&](const Entry& entry) { return entry.end_step() <= first_step; });
    std::vector<Step> skipped = before_.skipped;
    std::erase_if(skipped, [&](Step step) { return step < first_step; });
    // A withdrawal drops nothing, be there something or not.
    const bool withdrawn = first_step == before_.first_step;
    const auto compare = [&](std::string_view rule, std::string_view what, const auto& was,
                             const auto& needed, const auto& is, auto& made_part) {
      if (is != needed && !(withdrawn && is == was)) {
        fail(rule, fmt::format("a trim to {} leaves other {} than what ends above it",
                               first_step.value, what));
      }
      made_part = is;
    };
    compare("I3", "entries", before_.tail, tail, after_.tail, made.tail);
    compare("I3", "segments", before_.segments, needed_segments(before_, first_step),
            after_.segments, made.segments);
    compare("I15", "SKIPs", before_.skipped, skipped, after_.skipped, made.skipped);
    compare("I15", "topologies", before_.topologies, needed_rows(before_.topologies, first_step),
            after_.topologies, made.topologies);
    compare("I15", "memberships", before_.memberships,
            needed_rows(before_.memberships, std::min(first_step, last_step)), after_.memberships,
            made.memberships);
    made.first_step = first_step;
  }

  void check_skip() {
    if (after_.skipped.size() == before_.skipped.size() + 1 &&
        std::ranges::includes(after_.skipped, before_.skipped)) {
      return;
    }
    fail("I15", "what is skipped changed by something else than one more step");
  }

  void check_topology() {
    const Step from = before_.next_step;
    if (rows_below(after_.topologies, from) == rows_below(before_.topologies, from)) return;
    fail("I15", fmt::format("a topology of a step below {} changed", from.value));
  }

  /// What was set, replaced or taken back is of one step, which is not committed yet.
  void check_membership() {
    const Step next_step = before_.next_step;
    if (rows_below(after_.memberships, next_step) != rows_below(before_.memberships, next_step)) {
      fail("I15", fmt::format("a membership of a step below {} changed", next_step.value));
    }
    std::set<Step> changed;
    const auto compare = [&](const Head& left, const Head& right) {
      for (const MembershipRow& row : left.memberships) {
        if (std::ranges::count(right.memberships, row) == 0) changed.insert(row.from_step);
      }
    };
    compare(before_, after_);
    compare(after_, before_);
    if (changed.size() != 1) {
      fail("I8", fmt::format("memberships of {} steps changed", changed.size()));
    }
    for (const MembershipRow& row : after_.memberships) {
      if (std::ranges::count(before_.memberships, row) == 0) check_setter(row);
    }
  }

  void check_setter(const MembershipRow& row) {
    const store::ProducerRow* producer = before_.find_producer(row.producer);
    if (producer != nullptr && producer->term == row.term) return;
    fail("I8", fmt::format("the membership from step {} was set in term {} of {}, which is not its "
                           "term",
                           row.from_step.value, row.term.value, row.producer));
  }

  const Head& before_;
  const Head& after_;
  Violations& violations_;
};

}  // namespace

void check_edit(const Head& before, const Head& after, Violations& violations) {
  EditRules(before, after, violations).check();
}

}  // namespace batchloom::simulator
