// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head_transition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "batchloom/store/edit_transition.h"

namespace batchloom::store {
namespace {

using Refs = std::span<const SegmentRef>;

Refs level_of(const Head& head, std::size_t level) {
  return level < head.segments.size() ? Refs(head.segments[level]) : Refs();
}

template <class Row>
bool starts_with(std::span<const Row> rows, std::span<const Row> prefix) {
  return rows.size() >= prefix.size() && std::ranges::equal(rows.first(prefix.size()), prefix);
}

/// Collects what is wrong with one pair of heads.
class Transition {
 public:
  Transition(const Head& before, const Head& after)
      : before_(before),
        after_(after),
        is_fence_(after.writer.term.value == after.slot.value),
        added_(std::ranges::lower_bound(after.tail, before.next_step, {}, &Entry::first_step),
               after.tail.end()),
        old_row_(before.find_producer(after.writer.producer)),
        new_row_(after.find_producer(after.writer.producer)) {}

  std::vector<std::string> check() {
    check_kept();
    check_others();
    check_carried();
    if (new_row_ == nullptr) {
      fail(fmt::format("writer '{}' has no row", after_.writer.producer));
      return std::move(problems_);
    }
    check_writer();
    if (is_fence_) {
      check_fence();
    } else if (old_row_ != nullptr) {
      check_commit();
    }
    return std::move(problems_);
  }

 private:
  void fail(std::string problem) { problems_.push_back(std::move(problem)); }

  /// What only events and trims change; and the next step only moves up.
  void check_kept() {
    const auto expect_same = [&](std::string_view what, bool same) {
      if (same) return;
      fail(fmt::format("{} changed, although {} wrote this slot", what, after_.writer.producer));
    };
    if (after_.first_step != before_.first_step) {
      fail(fmt::format("first step moves from {} to {}, although {} wrote this slot",
                       before_.first_step.value, after_.first_step.value, after_.writer.producer));
    }
    expect_same("the trim intent has", after_.trim_intent == before_.trim_intent);
    expect_same("the end has", after_.ended == before_.ended);
    expect_same("the topologies have", after_.topologies == before_.topologies);
    expect_same("the memberships have", after_.memberships == before_.memberships);
    expect_same("what is skipped has", after_.skipped == before_.skipped);
    if (after_.next_step < before_.next_step) {
      fail(fmt::format("next step falls from {} to {}", before_.next_step.value,
                       after_.next_step.value));
    }
  }

  /// The rows of everybody but the writer.
  void check_others() {
    for (const ProducerRow& row : before_.producers) {
      if (row.producer == after_.writer.producer) continue;
      const ProducerRow* now = after_.find_producer(row.producer);
      if (now == nullptr && !(is_fence_ && row.finished)) {
        fail(fmt::format("the row of {} is gone, although {}", row.producer,
                         row.finished ? "only a fence drops rows" : "it has not finished"));
      } else if (now != nullptr && *now != row) {
        fail(fmt::format("the row of {} has changed, although {} wrote this slot", row.producer,
                         after_.writer.producer));
      }
    }
    for (const ProducerRow& row : after_.producers) {
      if (row.producer != after_.writer.producer && !before_.find_producer(row.producer)) {
        fail(fmt::format("the row of {} is new, although {} wrote this slot", row.producer,
                         after_.writer.producer));
      }
    }
  }

  /// The tail, and the references to segments.
  void check_carried() {
    const bool grows = !is_fence_ && !added_.empty();
    const bool is_sealed = grows && !before_.tail.empty() && added_.size() == after_.tail.size();
    if (is_sealed) return check_seal();
    if (grows ? !starts_with<Entry>(after_.tail, before_.tail) : after_.tail != before_.tail) {
      fail(fmt::format("the tail is not what slot {} left", before_.slot.value));
    }
    if (after_.segments != before_.segments) {
      fail(fmt::format("the segments are not those of slot {}, although nothing was sealed",
                       before_.slot.value));
    }
  }

  /// Levels from the newest to the oldest, each with what comes up into it. The tail's own segment
  /// comes in last, after level 0 may have moved.
  void check_seal() {
    Refs leaves = level_of(after_, 0);
    const Step begin = before_.tail.front().first_step;
    if (leaves.empty() || !is_new(leaves.back(), begin)) {
      return fail(fmt::format("the tail is gone, but no segment of this slot begins at step {}",
                              begin.value));
    }
    leaves = leaves.first(leaves.size() - 1);
    std::optional<Step> rising = check_level(0, leaves, std::nullopt);
    const std::size_t levels = std::max(before_.segments.size(), after_.segments.size());
    for (std::size_t level = 1; level < levels; ++level) {
      rising = check_level(level, level_of(after_, level), rising);
    }
    if (rising) {
      fail(fmt::format("the segments from step {} on are gone into none of this slot",
                       rising->value));
    }
  }

  /// `rising` is where a segment begins that comes up from the level below; the result is the same
  /// for the level above. `now` is what the level holds.
  std::optional<Step> check_level(std::size_t level, Refs now, std::optional<Step> rising) {
    const Refs old = level_of(before_, level);
    const bool stays = starts_with(now, old);
    if (stays) now = now.subspan(old.size());
    const bool rises_on = !stays && now.empty();  // What came up went along.
    const std::size_t children = old.size() + (rises_on && rising ? 1 : 0);
    const bool holds_rising = rising && !rises_on;
    const bool fits = (stays || children >= 2) &&
                      (holds_rising ? now.size() == 1 && is_new(now[0], *rising) : now.empty());
    if (!fits) {
      fail(fmt::format("level {} has neither slot {}'s segments nor one of this slot instead",
                       level, before_.slot.value));
    }
    return stays ? std::nullopt : std::optional(old.front().first_step);
  }

  bool is_new(const SegmentRef& ref, Step first_step) const {
    return ref.slot == after_.slot && ref.first_step == first_step;
  }

  /// What holds for the writer's row after a slot of any sort.
  void check_writer() {
    const std::string& name = new_row_->producer;
    if (new_row_->last_slot != after_.slot) {
      fail(fmt::format("{} wrote it, but its row names slot {} as its last", name,
                       new_row_->last_slot.value));
    }
    if (new_row_->term != after_.writer.term) {
      fail(fmt::format("{} wrote it in term {}, but its row has term {}", name,
                       after_.writer.term.value, new_row_->term.value));
    }
    if (!is_fence_ && (old_row_ == nullptr || old_row_->term != after_.writer.term)) {
      fail(fmt::format("{} wrote it in term {}, but {}", name, after_.writer.term.value,
                       old_row_ == nullptr
                           ? std::string("had no row")
                           : fmt::format("had been fenced in term {}", old_row_->term.value)));
    }
  }

  /// A fence commits nothing.
  void check_fence() {
    const ProducerRow expected = [&] {
      ProducerRow row = old_row_ == nullptr ? ProducerRow() : *old_row_;
      row.producer = new_row_->producer;
      row.term = new_row_->term;
      row.last_slot = new_row_->last_slot;
      row.finished = false;
      return row;
    }();
    if (*new_row_ != expected) {
      fail(fmt::format("fences {}, but changes more of its row than its term", new_row_->producer));
    }
    if (after_.next_step != before_.next_step) {
      fail(fmt::format("fences {}, but moves next step from {} to {}", new_row_->producer,
                       before_.next_step.value, after_.next_step.value));
    }
  }

  /// The entries that the writer has added, against its row. Precondition: it had a row.
  void check_commit() {
    if (old_row_->finished && !new_row_->finished) {
      fail(fmt::format("{} had finished, and was not fenced since", new_row_->producer));
    }
    Step step = before_.next_step;
    Seq seq = old_row_->next_seq;
    for (auto entry = added_.begin(); entry != added_.end(); ++entry, ++seq) {
      if (entry->producer != after_.writer.producer || entry->term != after_.writer.term) {
        fail(fmt::format("step {} was added as {}'s of term {}, although {} of term {} wrote it",
                         entry->first_step.value, entry->producer, entry->term.value,
                         after_.writer.producer, after_.writer.term.value));
      } else if (entry->seq != seq) {
        fail(fmt::format("step {} was added as {}'s batch {}, although {} was next",
                         entry->first_step.value, entry->producer, entry->seq.value, seq.value));
      }
      if (entry->first_step != step) break;
      step = entry->end_step();
    }
    if (step != after_.next_step) {
      fail(fmt::format("next step moves from {} to {}, but entries were added up to {}",
                       before_.next_step.value, after_.next_step.value, step.value));
    }
    if (new_row_->next_seq != seq) {
      fail(fmt::format("{}'s next batch is {}, but entries were added up to {}", new_row_->producer,
                       new_row_->next_seq.value, seq.value));
    }
    if (added_.empty()) return check_finish();
    if (new_row_->finished) {
      fail(fmt::format("{} adds entries, although it has finished", new_row_->producer));
    }
    check_appendable();
  }

  /// Whether the stream took what was added. Precondition: something was.
  void check_appendable() {
    if (before_.ended) {
      fail(fmt::format("step {} was added, although the stream had ended",
                       added_.front().first_step.value));
    }
    const TopologyRow* topology = before_.topology_at(before_.next_step);
    if (topology == nullptr) return;
    for (const Entry& entry : added_) {
      if (entry.ranks == topology->ranks) continue;
      fail(fmt::format("step {} was added for {} ranks, although '{}' of {} holds from step {} on",
                       entry.first_step.value, entry.ranks, topology->axes, topology->ranks,
                       topology->from_step.value));
    }
  }

  /// A slot that adds nothing. Precondition: the writer had a row.
  void check_finish() {
    if (old_row_->finished || !new_row_->finished) {
      fail(fmt::format("{} wrote it, but neither fenced, committed nor finished anything",
                       new_row_->producer));
    }
    if (new_row_->state != old_row_->state) {
      fail(fmt::format("{} adds nothing, but its state has changed", new_row_->producer));
    }
  }

  const Head& before_;
  const Head& after_;
  const bool is_fence_;
  const std::span<const Entry> added_;  // The entries of `after` from the old next step on.
  const ProducerRow* const old_row_;
  const ProducerRow* const new_row_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> transition_problems(const Head& before, const Head& after) {
  if (after.writer.producer.empty()) return edit_problems(before, after);
  return Transition(before, after).check();
}

}  // namespace batchloom::store
