// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/ids.h"

namespace batchloom::model {

/// Where a record's bytes lie in its source.
struct SourcePlace {
  ShardIndex shard;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;

  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

/// What planning knows of a sample: everything but its payload.
struct SampleMeta {
  SampleId id;
  /// At least 1.
  std::uint32_t tokens = 0;
  /// Labels, after the shift by one, that the loss counts; at most `tokens`.
  std::uint32_t valid_labels = 0;
  /// The position, in the record, of the sample's token 0.
  std::uint64_t first_position = 0;
  /// One entry per picture: its patches. Empty for text.
  std::vector<std::uint32_t> image_patches;
  /// Of the whole record.
  SourcePlace place;

  friend bool operator==(const SampleMeta&, const SampleMeta&) = default;
};

}  // namespace batchloom::model
