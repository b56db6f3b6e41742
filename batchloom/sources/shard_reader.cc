// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/shard_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {

RecordSize size_of(const Record& record) {
  const auto tokens = static_cast<std::uint32_t>(record.ids.size());
  RecordSize size{.place = record.place, .tokens = tokens, .valid_labels = 0};
  if (tokens == 0) return size;
  size.valid_labels = record.loss_mask.empty()
                          ? tokens - 1
                          : static_cast<std::uint32_t>(std::count(record.loss_mask.begin() + 1,
                                                                  record.loss_mask.end(), 1));
  return size;
}

Result<std::optional<BadRecord>> ShardReader::measure(std::uint64_t record, const CallOptions& call,
                                                      RecordSize& out) {
  BL_ASSIGN_OR_RETURN(std::optional<BadRecord> bad, read(record, call, scratch_));
  out = size_of(scratch_);
  keep_little(scratch_.ids);
  keep_little(scratch_.loss_mask);
  return bad;
}

Result<std::optional<BadRecord>> ShardReader::read_pictures(std::uint64_t record,
                                                            const CallOptions& /*call*/,
                                                            std::vector<RecordPicture>& out) {
  out.clear();
  BL_RETURN_IF_ERROR(check_number(record));
  return std::optional<BadRecord>();
}

Status ShardReader::check_number(std::uint64_t record) const {
  if (record < records()) return Status::ok();
  return Status::invalid(
      fmt::format("{}: record {} was asked for; there are {}", name(), record, records()));
}

}  // namespace batchloom::sources
