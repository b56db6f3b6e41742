// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/sample_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/store/piece_content.h"

namespace batchloom::construction {
namespace {

using store::SampleTensor;
using store::TokenWidth;

std::uint64_t row_bytes(const BlockSample& sample) {
  std::uint64_t bytes = sizeof(BlockSample);
  bytes += sample.meta.image_patches.size() * sizeof(std::uint32_t);
  if (sample.content.labels) {
    bytes += sample.content.labels->size() * sizeof(store::LabelInterval);
  }
  for (const SampleTensor& tensor : sample.content.tensors) {
    bytes += sizeof(SampleTensor) + tensor.info.name.size() +
             tensor.info.shape.size() * sizeof(std::uint32_t);
  }
  return bytes;
}

/// The part's tensors, whose tokens count from the part's first.
std::vector<SampleTensor> tensors_of(const PartContent& part) {
  std::vector<SampleTensor> tensors;
  tensors.reserve(part.tensors.size());
  for (const RecordTensor& tensor : part.tensors) {
    tensors.push_back({tensor.token - part.shape.first_position, tensor.info, tensor.bytes});
  }
  return tensors;
}

/// One pass without a branch per id; a fixed number of them at once, which compilers turn into
/// vectors that stay in registers. Copied into an array first, ids would take eight times as long.
template <class Id>
std::uint32_t largest_id(ByteSpan ids) {
  constexpr std::size_t kLanes = 32 / sizeof(Id);
  std::array<Id, kLanes> largest{};
  for (; ids.size() >= sizeof(largest); ids = ids.subspan(sizeof(largest))) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const Id id = load_le<Id>(ids.data() + i * sizeof(Id));
      largest[i] = id > largest[i] ? id : largest[i];
    }
  }
  for (; !ids.empty(); ids = ids.subspan(sizeof(Id))) {
    largest[0] = std::max(largest[0], load_le<Id>(ids.data()));
  }
  return *std::ranges::max_element(largest);
}

std::uint32_t largest_id(const TokenSpan& tokens) {
  return tokens.width() == TokenWidth::k16 ? largest_id<std::uint16_t>(tokens.bytes())
                                           : largest_id<std::uint32_t>(tokens.bytes());
}

/// What is looked at together: it fits into the cache next to a core.
constexpr std::size_t kLookBytes = std::size_t{16} << 10;

struct Look {
  std::uint32_t largest = 0;
  std::uint32_t crc = 0;
};

/// Of ids in a block.
Look look_at(ByteSpan ids, TokenWidth width) {
  Look look;
  while (!ids.empty()) {
    const ByteSpan some = ids.first(std::min(ids.size(), kLookBytes));
    look.crc = crc32c(some, look.crc);
    look.largest = std::max(look.largest, largest_id(TokenSpan(some, width)));
    ids = ids.subspan(some.size());
  }
  return look;
}

template <class From, class To>
void append_ids(ByteSpan from, RawBuffer& out) {
  std::byte* to = out.extend(from.size() / sizeof(From) * sizeof(To)).data();
  for (std::size_t at = 0; at < from.size(); at += sizeof(From), to += sizeof(To)) {
    store_le(static_cast<To>(load_le<From>(from.data() + at)), to);
  }
}

}  // namespace

SampleBlockBuilder::SampleBlockBuilder(SampleBlockOptions options)
    : options_(options), block_(new SampleBlock) {
  block_->step_ = options.step;
  block_->source_ = options.source;
  block_->width_ = token_width_for(options.vocab);
  block_->payload_ = RawBuffer(options.payload_bytes);
  block_->samples_.reserve(options.samples);
  places_.reserve(options.samples);
}

Status SampleBlockBuilder::check_ids(const PartContent& part) const {
  const std::uint32_t vocab = options_.vocab;
  const auto refuse = [&](std::uint64_t place, std::uint32_t id) {
    return Status::invalid(fmt::format(
        "token {} of the record is id {}; the vocabulary has {} ids: check `vocab` and the "
        "tokenizer",
        place, id, vocab));
  };
  if (largest_id(part.tokens) >= vocab) {
    std::size_t i = 0;
    while (part.tokens[i] < vocab) ++i;
    return refuse(part.shape.first_position + i, part.tokens[i]);
  }
  if (part.next_token && *part.next_token >= vocab) {
    return refuse(part.shape.first_position + part.tokens.size(), *part.next_token);
  }
  return Status::ok();
}

Status SampleBlockBuilder::check_meta(const model::SampleMeta& meta, const PartContent& part,
                                      std::size_t tokens) const {
  if (meta.id.source != options_.source) {
    return Status::invalid(
        fmt::format("does not belong into a block of source {}", options_.source.value));
  }
  const PartShape& shape = part.shape;
  if (meta.tokens != shape.tokens || meta.tokens != tokens ||
      meta.first_position != shape.first_position || meta.valid_labels != shape.valid_labels) {
    return Status::invalid(fmt::format(
        "is planned with {} tokens from position {} and {} valid labels, and was read with {}, {} "
        "and {}: was the file changed after it was indexed?",
        meta.tokens, meta.first_position, meta.valid_labels, tokens, shape.first_position,
        shape.valid_labels));
  }
  if (meta.image_patches.size() != part.tensors.size()) {
    return Status::invalid(fmt::format("is planned with {} pictures, and was read with {} tensors",
                                       meta.image_patches.size(), part.tensors.size()));
  }
  return Status::ok();
}

void SampleBlockBuilder::copy_tokens(const TokenSpan& tokens) {
  RawBuffer& out = block_->payload_;
  const ByteSpan ids = tokens.bytes();
  if (tokens.width() == block_->width_) {
    out.append(ids);
  } else if (tokens.width() == TokenWidth::k16) {
    append_ids<std::uint16_t, std::uint32_t>(ids, out);
  } else {
    append_ids<std::uint32_t, std::uint16_t>(ids, out);
  }
}

Status SampleBlockBuilder::add(model::SampleMeta meta, const PartContent& part) {
  const auto named = [&](const Status& error) {
    return error.with_context(fmt::format("sample {}", to_string(meta.id)));
  };
  Status checked = check_meta(meta, part, part.tokens.size());
  if (checked.is_ok()) checked = check_ids(part);
  if (!checked.is_ok()) return named(checked);
  BlockSample sample;
  sample.content.next_token = part.next_token;
  sample.content.labels = part.shape.labels;
  sample.content.tensors = tensors_of(part);
  sample.content.tokens = part.tokens.bytes();  // Until they are copied.
  const model::PlanSample planned{.id = meta.id,
                                  .tokens = meta.tokens,
                                  .valid_labels = meta.valid_labels,
                                  .first_position = meta.first_position};
  const Status content = check_content(planned, part.tokens.width(), sample.content);
  if (!content.is_ok()) return named(content);
  places_.push_back(block_->payload_.size());
  copy_tokens(part.tokens);
  sample.content.tokens_crc =
      crc32c(std::as_const(block_->payload_).bytes().subspan(places_.back()));
  for (const SampleTensor& tensor : sample.content.tensors) block_->payload_.append(tensor.bytes);
  sample.meta = std::move(meta);
  block_->samples_.push_back(std::move(sample));
  return Status::ok();
}

Status SampleBlockBuilder::add_whole(model::SampleMeta meta) {
  const PartContent whole{.shape = {.first_position = 0,
                                    .tokens = meta.tokens,
                                    .has_next_token = false,
                                    .labels = {},
                                    .valid_labels = store::existing_labels(meta.tokens, false)},
                          .tokens = {},
                          .next_token = {},
                          .tensors = {}};
  if (const Status checked = check_meta(meta, whole, meta.tokens); !checked.is_ok()) {
    return checked.with_context(fmt::format("sample {}", to_string(meta.id)));
  }
  places_.push_back(block_->payload_.size());
  block_->payload_.extend(meta.tokens * store::token_bytes(block_->width_));
  block_->samples_.emplace_back().meta = std::move(meta);
  return Status::ok();
}

std::span<std::byte> SampleBlockBuilder::tokens_of(std::size_t sample) {
  return block_->payload_.bytes().subspan(
      places_[sample], block_->samples_[sample].meta.tokens * store::token_bytes(block_->width_));
}

bool SampleBlockBuilder::check_whole(std::size_t sample) {
  const Look look = look_at(tokens_of(sample), block_->width_);
  block_->samples_[sample].content.tokens_crc = look.crc;
  return look.largest < options_.vocab;
}

BlockPtr SampleBlockBuilder::finish() {
  SampleBlock& block = *block_;
  ByteSpan rest = std::as_const(block.payload_).bytes();
  const auto take = [&rest](std::size_t bytes) {
    const ByteSpan taken = rest.first(bytes);
    rest = rest.subspan(bytes);
    return taken;
  };
  block.size_bytes_ = sizeof(SampleBlock) + block.payload_.capacity();
  for (BlockSample& sample : block.samples_) {
    sample.content.tokens = take(sample.meta.tokens * store::token_bytes(block.width_));
    for (SampleTensor& tensor : sample.content.tensors) tensor.bytes = take(tensor.bytes.size());
    block.size_bytes_ += row_bytes(sample);
  }
  return BlockPtr(std::move(block_));
}

}  // namespace batchloom::construction
