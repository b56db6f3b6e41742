// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_split.h"

#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/control/split_keying.h"

namespace batchloom::control {
namespace {

/// Where of `all` a key is, if keys are spread over 0 to 2^64.
std::uint64_t place_of_key(std::uint64_t key, std::uint64_t all) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{key} * all) >> 64);
}

}  // namespace

Result<SourceSplit> SourceSplit::open(const PipelineConfig& config, const SourceConfig& source,
                                      const ShardOpener& opener, const std::string& index_folder,
                                      const sources::RecordSource& records) {
  SourceSplit split(records);
  split.name_hash_ = xxh3_64(as_bytes(source.name));
  for (const auto& [name, share] : source.split) {
    if (name == config.run.split) {
      split.begin_ = split.all_;
      split.end_ = split.all_ + share;
    }
    split.all_ += share;
  }
  if (!split.takes_part() || !has_split_keys(source)) return split;
  BL_ASSIGN_OR_RETURN(const SplitKeying keying, SplitKeying::create(source, opener, index_folder));
  for (const sources::IndexedShard& shard : records.shards()) {
    BL_ASSIGN_OR_RETURN(auto keys, keying.open(shard));
    split.keys_.push_back(std::move(keys));
  }
  return split;
}

Result<bool> SourceSplit::has(model::RecordIndex record) const {
  std::uint64_t place = 0;
  if (keys_.empty()) {
    place = mix64(name_hash_ ^ mix64(record.value)) % all_;
  } else {
    const sources::ShardRecord at = records_->locate(record);
    BL_ASSIGN_OR_RETURN(const std::uint64_t key, keys_[at.shard.value]->key(at.record));
    place = place_of_key(key, all_);
  }
  return begin_ <= place && place < end_;
}

}  // namespace batchloom::control
