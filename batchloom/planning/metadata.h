// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/planning/mixture.h"
#include "batchloom/planning/record_lengths.h"

namespace batchloom::planning {

/// A source as planning sees it.
struct SourceRecords {
  std::string name;
  std::uint64_t records = 0;

  friend bool operator==(const SourceRecords&, const SourceRecords&) = default;
};

/// All that planning knows of records: what an index says of them. The same answers whenever one
/// asks. Implementations: RecordTable (record_table.h).
class Metadata : public RecordLengths {
 public:
  /// By SourceId. No two have the same name.
  virtual std::span<const SourceRecords> sources() const = 0;

  std::string name_of(model::SourceId source) const final {
    return "'" + sources()[source.value].name + "'";
  }

  /// What a part holds besides its length. Precondition: the part was drawn by tokens(). Errors end
  /// the call that asked, as those of tokens() do.
  virtual Result<model::SampleMeta> describe(const Part& part) = 0;
};

}  // namespace batchloom::planning
