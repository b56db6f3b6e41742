// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <vector>

#include "batchloom/control/pipeline_state.h"
#include "batchloom/planning/metadata.h"

namespace batchloom::control {

/// Metadata without the records that turned out to be bad after they were indexed: those have no
/// tokens, so that the mixture draws the next record of their source instead. As thread-safe as
/// what it wraps.
class StruckRecords final : public planning::Metadata {
 public:
  /// `metadata` outlives it.
  explicit StruckRecords(planning::Metadata& metadata, std::span<const RecordName> struck = {})
      : metadata_(metadata), struck_(struck.begin(), struck.end()) {}

  std::span<const planning::SourceRecords> sources() const override { return metadata_.sources(); }
  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override {
    if (struck_.contains({source, record})) return 0U;
    return metadata_.tokens(source, record);
  }
  Result<model::SampleMeta> describe(const planning::Part& part) override {
    return metadata_.describe(part);
  }

  /// False where it was struck before.
  bool strike(const RecordName& record) { return struck_.insert(record).second; }
  std::vector<RecordName> struck() const { return {struck_.begin(), struck_.end()}; }
  std::size_t size() const { return struck_.size(); }
  /// Those of one source.
  std::uint64_t count(model::SourceId source) const {
    const auto begin = struck_.lower_bound({source, model::RecordIndex(0)});
    const auto end = struck_.lower_bound({source + 1, model::RecordIndex(0)});
    return static_cast<std::uint64_t>(std::distance(begin, end));
  }

 private:
  planning::Metadata& metadata_;
  std::set<RecordName> struck_;
};

}  // namespace batchloom::control
