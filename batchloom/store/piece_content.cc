// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_content.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::store {
namespace {

Status check_tokens(const model::PlanSample& sample, TokenWidth width,
                    const SampleContent& content) {
  const std::uint64_t expected = std::uint64_t{sample.tokens} * token_bytes(width);
  if (content.tokens.size() != expected) {
    return Status::invalid(fmt::format("has {} bytes of tokens; {} ids of {} bytes make {}",
                                       content.tokens.size(), sample.tokens, token_bytes(width),
                                       expected));
  }
  if (width == TokenWidth::k16 && content.next_token && *content.next_token > UINT16_MAX) {
    return Status::invalid(fmt::format("is followed by token {}, which does not fit into 2 bytes",
                                       *content.next_token));
  }
  return Status::ok();
}

Status check_labels(const model::PlanSample& sample, const SampleContent& content) {
  const std::uint32_t existing = existing_labels(sample.tokens, content.next_token.has_value());
  std::uint64_t counted = existing;
  if (content.labels) {
    counted = 0;
    const LabelInterval* before = nullptr;
    for (const LabelInterval& interval : *content.labels) {
      const bool apart = before == nullptr || before->end < interval.begin;
      if (!apart || interval.begin >= interval.end || interval.end > existing) {
        return Status::invalid(fmt::format(
            "counts labels [{}, {}){} of {}; intervals must ascend, lie apart and not "
            "be empty",
            interval.begin, interval.end,
            before == nullptr ? "" : fmt::format(" after [{}, {})", before->begin, before->end),
            existing));
      }
      counted += interval.end - interval.begin;
      before = &interval;
    }
  }
  if (counted == sample.valid_labels) return Status::ok();
  return Status::invalid(fmt::format("counts {} labels of {}, the plan says {}", counted, existing,
                                     sample.valid_labels));
}

Status check_tensors(const model::PlanSample& sample, const SampleContent& content) {
  std::uint32_t least = 0;
  for (const SampleTensor& tensor : content.tensors) {
    BL_ASSIGN_OR_RETURN(const std::uint64_t expected, tensor_bytes(tensor.info));
    if (tensor.bytes.size() != expected) {
      return Status::invalid(fmt::format("tensor '{}' has {} bytes, its shape makes {}",
                                         tensor.info.name, tensor.bytes.size(), expected));
    }
    if (tensor.token < least || tensor.token >= sample.tokens) {
      return Status::invalid(
          fmt::format("tensor '{}' belongs to token {}; expected one of [{}, {})", tensor.info.name,
                      tensor.token, least, sample.tokens));
    }
    least = tensor.token;
  }
  return Status::ok();
}

/// The part of ascending intervals that lies in [lo, hi), counted from lo.
std::vector<LabelInterval> cut_labels(std::span<const LabelInterval> labels, std::uint32_t lo,
                                      std::uint32_t hi) {
  std::vector<LabelInterval> cut;
  auto interval = std::ranges::upper_bound(labels, lo, {}, &LabelInterval::end);
  for (; interval != labels.end() && interval->begin < hi; ++interval) {
    cut.push_back({std::max(interval->begin, lo) - lo, std::min(interval->end, hi) - lo});
  }
  return cut;
}

std::span<const SampleTensor> cut_tensors(std::span<const SampleTensor> tensors, std::uint32_t lo,
                                          std::uint32_t hi) {
  const auto first = std::ranges::lower_bound(tensors, lo, {}, &SampleTensor::token);
  const auto end = std::ranges::lower_bound(first, tensors.end(), hi, {}, &SampleTensor::token);
  return {first, end};
}

}  // namespace

Status check_content(const model::PlanSample& sample, TokenWidth width,
                     const SampleContent& content) {
  BL_RETURN_IF_ERROR(check_tokens(sample, width, content));
  BL_RETURN_IF_ERROR(check_labels(sample, content));
  return check_tensors(sample, content);
}

PieceContent cut_piece(const model::Piece& piece, TokenWidth width, const SampleContent& content) {
  const std::size_t id_bytes = token_bytes(width);
  PieceContent cut;
  cut.tokens = content.tokens.subspan(piece.lo * id_bytes, piece.tokens() * id_bytes);
  cut.next_token = content.next_token;
  if (piece.hi * id_bytes < content.tokens.size()) {
    cut.next_token = token_at(content.tokens, width, piece.hi);
  }
  const std::uint32_t existing = existing_labels(piece.tokens(), cut.next_token.has_value());
  cut.all_labels = !content.labels || existing == 0;
  if (content.labels && existing > 0) {
    cut.labels = cut_labels(*content.labels, piece.lo, piece.hi);
    if (cut.labels.size() == 1 && cut.labels[0] == LabelInterval{0, existing}) {
      cut.all_labels = true;
      cut.labels.clear();
    }
  }
  cut.tensors = cut_tensors(content.tensors, piece.lo, piece.hi);
  return cut;
}

std::uint32_t token_at(ByteSpan tokens, TokenWidth width, std::size_t index) {
  const std::byte* id = &tokens[index * token_bytes(width)];
  return width == TokenWidth::k16 ? load_le<std::uint16_t>(id) : load_le<std::uint32_t>(id);
}

}  // namespace batchloom::store
