// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/ids.h"

#include <fmt/core.h>

namespace batchloom::model {

std::string to_string(const SampleId& id) {
  return fmt::format("{}:{}:{}:{}", id.source.value, id.epoch.value, id.index.value, id.part.value);
}

}  // namespace batchloom::model
