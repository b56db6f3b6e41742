// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/edit_transition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "batchloom/store/event_proposal.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

/// What a slot did, and the head that this makes.
struct Edit {
  std::string what;
  Head made;
};

/// Whoever committed it may have had another budget.
constexpr Limits kNoBudget{.event_bytes = SIZE_MAX};

Result<Edit> edit_of(std::string what, Result<std::optional<Head>> proposed) {
  BL_ASSIGN_OR_RETURN(std::optional<Head> made, std::move(proposed));
  if (made) return Edit{.what = std::move(what), .made = *std::move(made)};
  return Status::invalid(what + ", although that was so already");
}

/// The parts in which the heads differ, each with its verb. Chain, txid and writer are anybody's.
std::vector<std::string_view> differences(Head made, const Head& after) {
  made.previous_crc = after.previous_crc;
  made.txid = after.txid;
  made.writer = after.writer;
  std::vector<std::string_view> parts;
  const auto compare = [&](std::string_view part, const auto& ours, const auto& theirs) {
    if (ours != theirs) parts.push_back(part);
  };
  compare("the first step is", made.first_step, after.first_step);
  compare("the next step is", made.next_step, after.next_step);
  compare("the trim intent is", made.trim_intent, after.trim_intent);
  compare("the end is", made.ended, after.ended);
  compare("the topologies are", made.topologies, after.topologies);
  compare("the memberships are", made.memberships, after.memberships);
  compare("what is skipped is", made.skipped, after.skipped);
  compare("the rows of producers are", made.producers, after.producers);
  compare("the segments are", made.segments, after.segments);
  compare("the tail is", made.tail, after.tail);
  if (parts.empty() && made != after) parts.emplace_back("another part is");
  return parts;
}

Result<Edit> recognise_trim(const Head& before, const Head& after) {
  if (after.trim_intent) {
    const Step step = after.trim_intent->step;
    return Edit{.what = fmt::format("announces a trim to step {}", step.value),
                .made = propose_trim_intent(before, step)};
  }
  const Head withdrawn = withdraw_trim_intent(before);
  if (differences(withdrawn, after).empty())
    return Edit{.what = "withdraws an intent", .made = withdrawn};
  const Step announced = before.trim_intent->step;
  if (after.first_step > std::max(before.first_step, announced)) {
    return Status::invalid(
        fmt::format("first step moves from {} to {}, but only a trim to {} was announced",
                    before.first_step.value, after.first_step.value, announced.value));
  }
  return Edit{.what = fmt::format("trims to step {}", after.first_step.value),
              .made = complete_trim(before, after.first_step, {})};
}

Result<Edit> recognise_skip(const Head& before, const Head& after) {
  std::vector<Step> added;
  std::ranges::set_difference(after.skipped, before.skipped, std::back_inserter(added));
  if (added.size() != 1) {
    return Status::invalid(
        fmt::format("{} more steps are skipped; an event skips one", added.size()));
  }
  const Step step = added.front();
  return edit_of(fmt::format("skips step {}", step.value), propose_skip(before, step, kNoBudget));
}

Result<Edit> recognise_topology(const Head& before, const Head& after) {
  if (after.topologies.empty()) return Status::invalid("the topologies are gone");
  const std::string& axes = after.topologies.back().axes;
  BL_ASSIGN_OR_RETURN(const auto topology, model::Topology::parse(axes));
  return edit_of(fmt::format("sets the topology '{}'", axes),
                 propose_topology(before, topology, kNoBudget));
}

/// The row that a membership event was for: the one that is new, or, where what is in force is
/// wanted again, that of the row which went, with the digest in force.
Result<MembershipRow> changed_membership(const Head& before, const Head& after) {
  const auto only_in = [](const Head& left, const Head& right) {
    std::vector<MembershipRow> rows = left.memberships;
    std::erase_if(rows, [&](const MembershipRow& row) {
      return std::ranges::count(right.memberships, row) > 0;
    });
    return rows;
  };
  const auto added = only_in(after, before);
  if (added.size() == 1) return added.front();
  const auto gone = only_in(before, after);
  if (added.size() + gone.size() == 1) {
    const MembershipRow* in_force = after.membership_at(gone.front().from_step);
    if (in_force != nullptr) {
      MembershipRow row = *in_force;
      row.from_step = gone.front().from_step;
      return row;
    }
  }
  return Status::invalid(fmt::format("{} memberships are new and {} are gone; an event sets one",
                                     added.size(), gone.size()));
}

/// Whether the row's session may have set it.
Status check_setter(const Head& before, const MembershipRow& row) {
  const ProducerRow* setter = before.find_producer(row.producer);
  if (setter == nullptr || setter->term != row.term) {
    return Status::invalid(
        fmt::format("sets the membership from step {} in term {} of {}, which {}",
                    row.from_step.value, row.term.value, row.producer,
                    setter == nullptr ? std::string("had no row")
                                      : fmt::format("had term {}", setter->term.value)));
  }
  if (!row.ref || row.ref->seq == setter->next_seq) return Status::ok();
  return Status::invalid(fmt::format(
      "sets the membership from step {} by keys that were stored before batch {}, but batch {} is "
      "next",
      row.from_step.value, row.ref->seq.value, setter->next_seq.value));
}

Result<Edit> recognise_membership(const Head& before, const Head& after) {
  BL_ASSIGN_OR_RETURN(const MembershipRow row, changed_membership(before, after));
  BL_ASSIGN_OR_RETURN(Edit edit,
                      edit_of(fmt::format("sets the membership from step {}", row.from_step.value),
                              propose_membership(before, row, kNoBudget)));
  const bool is_new = std::ranges::count(after.memberships, row) > 0;
  if (is_new) BL_RETURN_IF_ERROR(check_setter(before, row));
  return edit;
}

/// What the slot did, by what has changed first in this order; or why it cannot be.
Result<Edit> recognise(const Head& before, const Head& after) {
  if (after.trim_intent != before.trim_intent) return recognise_trim(before, after);
  if (after.first_step != before.first_step) {
    return Status::invalid(fmt::format("first step moves from {} to {}, but no trim ends here",
                                       before.first_step.value, after.first_step.value));
  }
  if (after.skipped != before.skipped) return recognise_skip(before, after);
  if (after.topologies != before.topologies) return recognise_topology(before, after);
  if (after.memberships != before.memberships) return recognise_membership(before, after);
  if (after.ended == before.ended) {
    return Status::invalid("no producer wrote it, and it is neither an event nor a trim");
  }
  return after.ended ? edit_of("ends the stream", propose_end(before))
                     : edit_of("reopens the stream", propose_reopen(before));
}

}  // namespace

std::vector<std::string> edit_problems(const Head& before, const Head& after) {
  const Result<Edit> edit = recognise(before, after);
  if (!edit.is_ok()) return {std::string(edit.status().message())};
  std::vector<std::string> problems;
  for (const std::string_view part : differences(edit->made, after)) {
    problems.push_back(fmt::format("{}, but {} not what that makes of slot {}'s", edit->what, part,
                                   before.slot.value));
  }
  return problems;
}

}  // namespace batchloom::store
