// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/sample_partition.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::simulator {

void SamplePartition::add(const store::RunPiece& piece) {
  Sample& sample = samples_[piece.sample];
  sample.tokens = piece.sample_tokens;
  sample.held_tokens += piece.hi - piece.lo;
  std::uint32_t& end = sample.pieces[piece.lo];
  end = std::max(end, piece.hi);
}

Result<RecordRange> SamplePartition::records() const {
  if (samples_.empty()) return Status::corruption("the runs hold no sample");
  const model::SampleId& first = samples_.begin()->first;
  std::uint64_t next = first.index.value;
  for (const auto& [id, sample] : samples_) {
    if (id != model::SampleId{.source = first.source,
                              .epoch = first.epoch,
                              .index = model::RecordIndex(next),
                              .part = first.part}) {
      return Status::corruption(
          fmt::format("sample {} stands where record {} is next", to_string(id), next));
    }
    BL_RETURN_IF_ERROR(check(id, sample));
    ++next;
  }
  return RecordRange{.from = first.index.value, .to = next};
}

Status SamplePartition::check(const model::SampleId& id, const Sample& sample) {
  std::uint32_t end = 0;
  for (const auto& [lo, hi] : sample.pieces) {
    if (lo != end) break;
    end = hi;
  }
  if (end == sample.tokens && sample.held_tokens == sample.tokens) return Status::ok();
  return Status::corruption(
      fmt::format("the ranks hold {} tokens of sample {}, up to token {} without a gap; it has {}",
                  sample.held_tokens, to_string(id), end, sample.tokens));
}

}  // namespace batchloom::simulator
