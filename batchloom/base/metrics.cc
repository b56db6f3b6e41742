// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/metrics.h"

namespace batchloom {

Counter& Counters::counter(std::string_view name) {
  const MutexLock lock(mutex_);
  std::unique_ptr<Counter>& place = counters_[std::string(name)];
  if (place == nullptr) place = std::make_unique<Counter>();
  return *place;
}

std::map<std::string, std::uint64_t> Counters::snapshot() const {
  std::map<std::string, std::uint64_t> values;
  const MutexLock lock(mutex_);
  for (const auto& [name, counter] : counters_) values.emplace(name, counter->value());
  return values;
}

}  // namespace batchloom
