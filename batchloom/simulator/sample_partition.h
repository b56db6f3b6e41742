// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "batchloom/base/status.h"
#include "batchloom/store/run.h"

namespace batchloom::simulator {

/// The records [from, to) of one source.
struct RecordRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  friend bool operator==(const RecordRange&, const RecordRange&) = default;
};

/// Whether pieces are whole samples, cut without gap or overlap (rule I14). One thread at a time.
class SamplePartition {
 public:
  void add(const store::RunPiece& piece);

  /// The records that the samples are, one after the other. `corruption` where a token is held by
  /// no piece or by several, a record is left out or comes twice, or there is none at all.
  Result<RecordRange> records() const;

 private:
  struct Sample {
    std::uint32_t tokens = 0;
    std::uint64_t held_tokens = 0;
    std::map<std::uint32_t, std::uint32_t> pieces;  // From where to where.
  };

  static Status check(const model::SampleId& id, const Sample& sample);

  std::map<model::SampleId, Sample> samples_;
};

}  // namespace batchloom::simulator
