// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"

namespace batchloom::planning {

/// How long records are, as their index knows it: the same answer whenever one asks.
class RecordLengths {
 public:
  virtual ~RecordLengths() = default;

  /// Tokens of a whole record; 0 for one that is left out. Preconditions: the source exists, and
  /// the record lies below its number of records. An error ends the call that asked, which changes
  /// nothing and may be tried again.
  virtual Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) = 0;

  /// What messages call a source that exists.
  virtual std::string name_of(model::SourceId source) const { return std::to_string(source.value); }
};

}  // namespace batchloom::planning
