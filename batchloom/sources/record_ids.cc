// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_ids.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::sources {

void start_record(const TokenSettings& settings, Record& out) {
  out.ids.assign(settings.begin.begin(), settings.begin.end());
  out.loss_mask.clear();
}

void finish_record(const TokenSettings& settings, LossOn loss_on, Record& out) {
  out.ids.insert(out.ids.end(), settings.end.begin(), settings.end.end());
  if (loss_on == LossOn::kAll) {
    // There is a mask where a picture is.
    if (!out.loss_mask.empty()) out.loss_mask.resize(out.ids.size(), 1);
    return;
  }
  const bool last_counts =
      loss_on == LossOn::kAnswer || (!out.loss_mask.empty() && out.loss_mask.back() != 0);
  out.loss_mask.resize(out.ids.size(), last_counts ? 1 : 0);
}

void drop_record(Record& out) {
  out.ids.clear();
  out.loss_mask.clear();
  out.texts = {};
}

std::optional<std::string> check_ids(const Record& record, std::size_t first, std::uint32_t vocab) {
  const auto begin = record.ids.begin() + static_cast<std::ptrdiff_t>(first);
  const auto outside =
      std::find_if(begin, record.ids.end(), [&](TokenId id) { return id >= vocab; });
  if (outside == record.ids.end()) return std::nullopt;
  return fmt::format("token {}: {}", outside - begin,
                     outside_vocab(fmt::format("{}", *outside), vocab));
}

std::string outside_vocab(std::string_view id, std::uint32_t vocab) {
  return fmt::format("id {} is outside of the vocabulary of {} ids", id, vocab);
}

Status check_limits(const ReadLimits& limits) {
  if (limits.max_record_bytes >= 1 && limits.max_record_bytes <= kMaxRecordBytes) {
    return Status::ok();
  }
  return Status::invalid(fmt::format("max_record_bytes: {}; expected 1 to {}",
                                     limits.max_record_bytes, kMaxRecordBytes));
}

std::optional<BadRecord> check_record_bytes(const RecordName& name, const RecordPlace& place,
                                            const ReadLimits& limits) {
  if (place.size_bytes <= limits.max_record_bytes) return std::nullopt;
  return bad_record(
      name, BadRecordReason::kTooLarge,
      fmt::format("{} bytes; max_record_bytes is {}", place.size_bytes, limits.max_record_bytes));
}

}  // namespace batchloom::sources
