// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/record_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace batchloom::construction {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kOverLengthNames = {"split"sv, "truncate"sv, "drop"sv};

/// Labels [begin, end) of the record that count, as intervals counted from `begin`. Label i counts
/// where token i + 1 is learned.
std::vector<store::LabelInterval> counted_labels_in(std::span<const LearnedInterval> learned,
                                                    std::uint32_t begin, std::uint32_t end) {
  std::vector<store::LabelInterval> labels;
  auto interval = std::ranges::upper_bound(learned, begin + 1, {}, &LearnedInterval::end);
  for (; interval != learned.end(); ++interval) {
    const std::uint32_t from = std::max(interval->begin, begin + 1) - 1;
    const std::uint32_t to = std::min(interval->end - 1, end);
    if (from >= to) break;
    labels.push_back({from - begin, to - begin});
  }
  return labels;
}

}  // namespace

std::string_view to_string(OverLength over_length) {
  return kOverLengthNames[static_cast<std::size_t>(over_length)];
}

std::span<const std::string_view> over_length_names() {
  return kOverLengthNames;
}

std::uint32_t used_tokens(const CutRule& rule, std::uint32_t record_tokens) {
  if (record_tokens <= rule.max_sample_tokens) return record_tokens;
  switch (rule.over_length) {
    case OverLength::kSplit: return record_tokens;
    case OverLength::kTruncate: return rule.max_sample_tokens;
    case OverLength::kDrop: return 0;
  }
  return 0;
}

std::uint32_t part_count(const CutRule& rule, std::uint32_t record_tokens) {
  const std::uint32_t used = used_tokens(rule, record_tokens);
  return used / rule.max_sample_tokens + (used % rule.max_sample_tokens == 0 ? 0 : 1);
}

void OverLengthCounts::add(const CutRule& rule, std::uint32_t record_tokens) {
  if (record_tokens <= rule.max_sample_tokens) return;
  switch (rule.over_length) {
    case OverLength::kSplit: ++split_records; return;
    case OverLength::kTruncate:
      ++truncated_records;
      truncated_tokens += record_tokens - rule.max_sample_tokens;
      return;
    case OverLength::kDrop:
      ++dropped_records;
      dropped_tokens += record_tokens;
      return;
  }
}

OverLengthCounts& OverLengthCounts::operator+=(const OverLengthCounts& other) {
  split_records += other.split_records;
  truncated_records += other.truncated_records;
  truncated_tokens += other.truncated_tokens;
  dropped_records += other.dropped_records;
  dropped_tokens += other.dropped_tokens;
  return *this;
}

std::vector<LearnedInterval> learned_intervals(std::span<const std::uint8_t> mask) {
  std::vector<LearnedInterval> learned;
  for (std::uint32_t token = 0; token < mask.size(); ++token) {
    if (mask[token] == 0) continue;
    if (learned.empty() || learned.back().end != token) learned.push_back({token, token});
    ++learned.back().end;
  }
  return learned;
}

Status check_mask(const LossMask& mask, std::uint32_t record_tokens) {
  if (!mask) return Status::ok();
  const LearnedInterval* before = nullptr;
  for (const LearnedInterval& interval : *mask) {
    const bool apart = before == nullptr || before->end < interval.begin;
    if (!apart || interval.begin >= interval.end || interval.end > record_tokens) {
      return Status::invalid(fmt::format(
          "a loss mask with tokens [{}, {}){} of {}; intervals must ascend, lie apart and not be "
          "empty",
          interval.begin, interval.end,
          before == nullptr ? "" : fmt::format(" after [{}, {})", before->begin, before->end),
          record_tokens));
    }
    before = &interval;
  }
  return Status::ok();
}

PartShape shape_of_part(const CutRule& rule, const PartOf& which, const LossMask& mask) {
  const std::uint32_t used = used_tokens(rule, which.record_tokens);
  PartShape shape;
  shape.first_position = which.part.value * rule.max_sample_tokens;
  shape.tokens = std::min(rule.max_sample_tokens, used - shape.first_position);
  const std::uint32_t end = shape.first_position + shape.tokens;
  shape.has_next_token = end < used;
  const std::uint32_t existing = store::existing_labels(shape.tokens, shape.has_next_token);
  shape.valid_labels = existing;
  if (!mask) return shape;
  auto labels = counted_labels_in(*mask, shape.first_position, shape.first_position + existing);
  shape.valid_labels = 0;
  for (const store::LabelInterval& label : labels) shape.valid_labels += label.end - label.begin;
  if (shape.valid_labels < existing) shape.labels = std::move(labels);
  return shape;
}

Result<PartContent> cut_part(const CutRule& rule, const RecordContent& record,
                             model::PartIndex part) {
  if (rule.max_sample_tokens == 0) {
    return Status::invalid("max_sample_tokens of 0; a part has at least 1 token");
  }
  if (record.tokens.size() > UINT32_MAX) {
    return Status::invalid(fmt::format("a record of {} tokens; at most {} are possible",
                                       record.tokens.size(), UINT32_MAX));
  }
  const auto tokens = static_cast<std::uint32_t>(record.tokens.size());
  if (const std::uint32_t parts = part_count(rule, tokens); part.value >= parts) {
    return Status::invalid(fmt::format(
        "part {} of a record that gives {}: {} tokens, parts of at most {}, over_length "
        "\"{}\"; was the file changed after it was indexed?",
        part.value, parts, tokens, rule.max_sample_tokens, to_string(rule.over_length)));
  }
  BL_RETURN_IF_ERROR(check_mask(record.mask, tokens));
  if (!std::ranges::is_sorted(record.tensors, {}, &RecordTensor::token)) {
    return Status::invalid("a record whose tensors are not in the order of their tokens");
  }
  PartContent content;
  content.shape = shape_of_part(rule, {part, tokens}, record.mask);
  const std::uint32_t begin = content.shape.first_position;
  const std::uint32_t end = begin + content.shape.tokens;
  content.tokens = record.tokens.subspan(begin, content.shape.tokens);
  if (content.shape.has_next_token) content.next_token = record.tokens[end];
  const auto first = std::ranges::lower_bound(record.tensors, begin, {}, &RecordTensor::token);
  const auto last = std::ranges::lower_bound(record.tensors, end, {}, &RecordTensor::token);
  content.tensors = {first, last};
  return content;
}

}  // namespace batchloom::construction
