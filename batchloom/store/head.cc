// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head.h"

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::store {

DataName ProducerRow::state_object() const {
  BL_CHECK(state.ref.has_value(), "the state of " + producer + " stands inline");
  return {DataKind::kState, producer, state.ref->term, state.ref->seq, state.ref->nonce};
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

}  // namespace batchloom::store
