// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/ids.h"

#include <fmt/core.h>

#include "batchloom/base/hash.h"

namespace batchloom::model {

std::uint64_t hash_of(const SampleId& id) {
  const std::uint64_t pass = std::uint64_t{id.source.value} << 32 | id.epoch.value;
  return mix64(mix64(mix64(pass) ^ id.index.value) ^ id.part.value);
}

std::string to_string(const SampleId& id) {
  return fmt::format("{}:{}:{}:{}", id.source.value, id.epoch.value, id.index.value, id.part.value);
}

}  // namespace batchloom::model
