// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::store {

DataName ProducerRow::state_object() const {
  BL_CHECK(state.ref.has_value(), "the state of " + producer + " stands inline");
  return {DataKind::kState, producer, state.ref->term, state.ref->seq, state.ref->nonce};
}

DataName MembershipRow::object() const {
  BL_CHECK(ref.has_value(), "the membership keys stand inline");
  return {DataKind::kMembership, producer, term, ref->seq, ref->nonce};
}

const TopologyRow* Head::topology_at(Step step) const {
  const auto after = std::ranges::upper_bound(topologies, step, {}, &TopologyRow::from_step);
  return after == topologies.begin() ? nullptr : &*std::prev(after);
}

Step Head::memberships_kept_from() const {
  return std::min(first_step, next_step == Step(0) ? next_step : next_step - 1);
}

const MembershipRow* Head::membership_at(Step step) const {
  const auto after = std::ranges::upper_bound(memberships, step, {}, &MembershipRow::from_step);
  return after == memberships.begin() ? nullptr : &*std::prev(after);
}

bool Head::is_skipped(Step step) const {
  return std::ranges::binary_search(skipped, step);
}

const ProducerRow* Head::find_producer(std::string_view name) const {
  const auto row = std::lower_bound(
      producers.begin(), producers.end(), name,
      [](const ProducerRow& left, std::string_view right) { return left.producer < right; });
  return row != producers.end() && row->producer == name ? &*row : nullptr;
}

ProducerRow* Head::find_producer(std::string_view name) {
  return const_cast<ProducerRow*>(std::as_const(*this).find_producer(name));
}

Head successor(const Head& head) {
  Head next = head;
  next.slot = head.slot + 1;
  return next;
}

}  // namespace batchloom::store
