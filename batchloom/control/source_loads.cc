// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_loads.h"

namespace batchloom::control {

SourceLoad& SourceLoads::of(model::SourceId source) {
  if (loads_.size() <= source.value) loads_.resize(std::size_t{source.value} + 1);
  return loads_[source.value];
}

void SourceLoads::charge(std::optional<model::SourceId> source, Time now) {
  // Threads look at the clock before they come here, so they may come in another order.
  if (!since_ || now <= *since_) return;
  if (source) of(*source).waited += now - *since_;
  since_ = now;
}

void SourceLoads::end_wait(std::optional<model::SourceId> source, Time now) {
  charge(source, now);
  since_.reset();
}

void SourceLoads::brought(model::SourceId source, std::uint64_t bytes, Duration busy) {
  SourceLoad& load = of(source);
  load.bytes += bytes;
  load.busy += busy;
}

std::vector<SourceLoad> SourceLoads::look(std::optional<model::SourceId> source, Time now) const {
  SourceLoads copy = *this;
  copy.charge(source, now);
  return copy.loads_;
}

}  // namespace batchloom::control
