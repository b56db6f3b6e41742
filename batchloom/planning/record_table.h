// SPDX-License-Identifier: Apache-2.0
// Metadata in memory, for studies, examples and tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batchloom/planning/metadata.h"

namespace batchloom::planning {

/// A picture of a record. It belongs to the part in which it begins.
struct RecordPicture {
  std::uint32_t first_token = 0;  ///< The place, in the record, of its first token.
  std::uint32_t patches = 0;      ///< At least 1.

  friend bool operator==(const RecordPicture&, const RecordPicture&) = default;
};

struct TableRecord {
  std::uint32_t tokens = 0;                  ///< Those that stand for pictures included.
  std::vector<RecordPicture> pictures = {};  ///< By first_token.

  friend bool operator==(const TableRecord&, const TableRecord&) = default;
};

struct TableSource {
  std::string name;
  std::vector<TableRecord> records;
};

/// All labels count but that of a record's last token, which has none. Immutable; thread-safe.
class RecordTable final : public Metadata {
 public:
  /// By SourceId. `invalid`: a name that is empty or given twice; a picture without patches, out of
  /// order or beyond its record's end.
  static Result<RecordTable> create(std::vector<TableSource> sources);

  std::span<const SourceRecords> sources() const override { return sources_; }
  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override;
  /// `invalid`: a part of a record that does not exist, or beyond the record's end.
  Result<model::SampleMeta> describe(const Part& part) override;

 private:
  RecordTable() = default;

  std::vector<SourceRecords> sources_;
  std::vector<std::vector<TableRecord>> records_;  ///< By source.
};

}  // namespace batchloom::planning
