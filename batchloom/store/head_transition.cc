// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head_transition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchloom::store {
namespace {

/// Collects what is wrong with one pair of heads.
class Transition {
 public:
  Transition(const Head& before, const Head& after)
      : before_(before),
        after_(after),
        is_fence_(after.writer.term.value == after.slot.value),
        old_row_(before.find_producer(after.writer.producer)),
        new_row_(after.find_producer(after.writer.producer)) {}

  std::vector<std::string> check() {
    check_steps();
    check_others();
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

  /// Steps only move up.
  void check_steps() {
    if (after_.first_step < before_.first_step) {
      fail(fmt::format("first step falls from {} to {}", before_.first_step.value,
                       after_.first_step.value));
    }
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
    const auto added =
        std::ranges::lower_bound(after_.tail, before_.next_step, {}, &Entry::first_step);
    Step step = before_.next_step;
    Seq seq = old_row_->next_seq;
    for (auto entry = added; entry != after_.tail.end(); ++entry, ++seq) {
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
    if (added == after_.tail.end() && (old_row_->finished || !new_row_->finished)) {
      fail(fmt::format("{} wrote it, but neither fenced, committed nor finished anything",
                       new_row_->producer));
    }
  }

  const Head& before_;
  const Head& after_;
  const bool is_fence_;
  const ProducerRow* const old_row_;
  const ProducerRow* const new_row_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> transition_problems(const Head& before, const Head& after) {
  return Transition(before, after).check();
}

}  // namespace batchloom::store
