// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/store/frame.h"
#include "batchloom/store/run_table.h"

namespace batchloom::store {
namespace {

// What header and footer share. A later version keeps these places, so that damage and a version
// from the future can be told apart.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kUuidAt = 8;
constexpr std::size_t kCrcAt = 60;

constexpr std::string_view kHeaderMagic = "BLBO";
constexpr std::size_t kWidthAt = 6;
constexpr std::size_t kCodecAt = 7;
constexpr std::size_t kTermAt = 24;
constexpr std::size_t kSeqAt = 32;
constexpr std::size_t kStepsAt = 40;
constexpr std::size_t kRanksAt = 44;
constexpr std::size_t kPayloadAt = 48;
constexpr std::size_t kHeaderZeroAt = 56;

constexpr std::string_view kFooterMagic = "BLBE";
constexpr std::size_t kFooterZeroAt = 6;
constexpr std::size_t kIndexOffsetAt = 24;
constexpr std::size_t kIndexSizeAt = 32;
constexpr std::size_t kObjectSizeAt = 40;
constexpr std::size_t kFooterRestAt = 48;

Bytes begin_block(std::string_view magic, const StreamUuid& stream) {
  Bytes block(kBatchHeaderBytes);
  std::ranges::copy(as_bytes(magic), block.begin() + kMagicAt);
  store_le(kFormatVersion, &block[kVersionAt]);
  std::ranges::copy(stream.bytes, block.begin() + kUuidAt);
  return block;
}

void seal_block(Bytes& block) {
  store_le(crc32c(ByteSpan(block).first(kCrcAt)), &block[kCrcAt]);
}

/// A block of 64 bytes, and where it stands in the object.
struct Block {
  std::string_view name;
  std::string_view magic;
  std::uint64_t at = 0;
  ByteSpan bytes;
};

/// Is it whole, undamaged, readable by this build, and of the stream?
Status check_block(const BatchContext& context, const Block& block) {
  const auto corrupt = [&](std::size_t place, std::string_view reason) {
    return corrupt_at(context.key, block.at + place, reason);
  };
  if (block.bytes.size() != kBatchHeaderBytes) {
    return corrupt(block.bytes.size(),
                   fmt::format("truncated: the {} has {} bytes, {} are there", block.name,
                               kBatchHeaderBytes, block.bytes.size()));
  }
  if (as_text(block.bytes.first(block.magic.size())) != block.magic) {
    return corrupt(kMagicAt,
                   fmt::format("no {} of a batch object (the magic is missing)", block.name));
  }
  const auto stored = load_le<std::uint32_t>(&block.bytes[kCrcAt]);
  if (const std::uint32_t computed = crc32c(block.bytes.first(kCrcAt)); computed != stored) {
    return corrupt(kCrcAt, fmt::format("damaged {}: CRC-32C is {:08x}, stored {:08x}", block.name,
                                       computed, stored));
  }
  const auto version = load_le<std::uint16_t>(&block.bytes[kVersionAt]);
  if (version != kFormatVersion) {
    return unknown_version_at({.key = context.key}, block.at + kVersionAt,
                              fmt::format("the {}", block.name), version);
  }
  StreamUuid uuid;
  std::ranges::copy(block.bytes.subspan(kUuidAt, uuid.bytes.size()), uuid.bytes.begin());
  if (uuid != context.identity.stream) {
    return corrupt(kUuidAt, fmt::format("belongs to stream {}, expected {}", uuid.to_string(),
                                        context.identity.stream.to_string()));
  }
  return Status::ok();
}

/// Where the index lies, as a footer that was not damaged states it.
Status check_extent(const BatchContext& context, std::uint64_t at, Slice index) {
  const std::uint64_t runs_begin = first_run_offset(context.ranks, context.steps);
  const std::uint64_t runs_min = std::uint64_t{context.ranks} * context.steps * kColumnAlignBytes;
  if (index.offset_bytes % kColumnAlignBytes != 0 || index.offset_bytes < runs_begin + runs_min ||
      index.offset_bytes > at || index.size_bytes != at - index.offset_bytes) {
    return corrupt_at(
        context.key, at + kIndexOffsetAt,
        fmt::format("states an index of {} bytes at byte {}; it must follow {} runs from byte {} "
                    "and end at byte {}",
                    index.size_bytes, index.offset_bytes,
                    std::uint64_t{context.ranks} * context.steps, runs_begin, at));
  }
  return Status::ok();
}

}  // namespace

std::string to_string(const BatchIdentity& identity) {
  return fmt::format("batch {} of {} in term {}", identity.seq.value, identity.producer,
                     identity.term.value);
}

Bytes encode_batch_header(const BatchContext& context, const BatchHeader& header) {
  Bytes block = begin_block(kHeaderMagic, context.identity.stream);
  store_le(static_cast<std::uint8_t>(header.token_width), &block[kWidthAt]);
  store_le(static_cast<std::uint8_t>(Codec::kRaw), &block[kCodecAt]);
  store_le(context.identity.term.value, &block[kTermAt]);
  store_le(context.identity.seq.value, &block[kSeqAt]);
  store_le(context.steps, &block[kStepsAt]);
  store_le(context.ranks, &block[kRanksAt]);
  store_le(header.payload_bytes, &block[kPayloadAt]);
  seal_block(block);
  return block;
}

Result<BatchHeader> decode_batch_header(const BatchContext& context, ByteSpan bytes) {
  BL_RETURN_IF_ERROR(
      check_block(context, {.name = "header", .magic = kHeaderMagic, .at = 0, .bytes = bytes}));
  const auto width = load_le<std::uint8_t>(&bytes[kWidthAt]);
  BL_RETURN_IF_ERROR(check_encoding({.key = context.key}, kWidthAt, width,
                                    load_le<std::uint8_t>(&bytes[kCodecAt])));
  const Term term(load_le<std::uint64_t>(&bytes[kTermAt]));
  const Seq seq(load_le<std::uint64_t>(&bytes[kSeqAt]));
  // A term belongs to one producer alone, so that its name need not stand here.
  if (term != context.identity.term || seq != context.identity.seq) {
    return corrupt_at(context.key, kTermAt,
                      fmt::format("is batch {} in term {}, expected {}", seq.value, term.value,
                                  to_string(context.identity)));
  }
  const auto steps = load_le<std::uint32_t>(&bytes[kStepsAt]);
  const auto ranks = load_le<std::uint32_t>(&bytes[kRanksAt]);
  if (steps != context.steps || ranks != context.ranks) {
    return corrupt_at(context.key, kStepsAt,
                      fmt::format("has {} steps and {} ranks, its entry says {} and {}", steps,
                                  ranks, context.steps, context.ranks));
  }
  const auto payload_bytes = load_le<std::uint64_t>(&bytes[kPayloadAt]);
  if (payload_bytes > context.size_bytes) {
    return corrupt_at(context.key, kPayloadAt,
                      fmt::format("states a payload of {} bytes, the object has {}", payload_bytes,
                                  context.size_bytes));
  }
  BL_RETURN_IF_ERROR(check_padding({.key = context.key}, kHeaderZeroAt,
                                   bytes.subspan(kHeaderZeroAt, kCrcAt - kHeaderZeroAt)));
  return BatchHeader{.token_width = static_cast<TokenWidth>(width), .payload_bytes = payload_bytes};
}

Bytes encode_batch_footer(const StreamUuid& stream, Slice index) {
  Bytes block = begin_block(kFooterMagic, stream);
  store_le(index.offset_bytes, &block[kIndexOffsetAt]);
  store_le(index.size_bytes, &block[kIndexSizeAt]);
  store_le(index.end() + kBatchFooterBytes, &block[kObjectSizeAt]);
  seal_block(block);
  return block;
}

Result<Slice> decode_batch_footer(const BatchContext& context, ByteSpan bytes) {
  const std::uint64_t at =
      context.size_bytes < kBatchFooterBytes ? 0 : context.size_bytes - kBatchFooterBytes;
  BL_RETURN_IF_ERROR(
      check_block(context, {.name = "footer", .magic = kFooterMagic, .at = at, .bytes = bytes}));
  const auto object_size = load_le<std::uint64_t>(&bytes[kObjectSizeAt]);
  if (object_size != context.size_bytes) {
    return corrupt_at(context.key, at + kObjectSizeAt,
                      fmt::format("states an object of {} bytes, its entry says {}", object_size,
                                  context.size_bytes));
  }
  BL_RETURN_IF_ERROR(check_padding({.key = context.key}, at + kFooterZeroAt,
                                   bytes.subspan(kFooterZeroAt, kUuidAt - kFooterZeroAt)));
  BL_RETURN_IF_ERROR(check_padding({.key = context.key}, at + kFooterRestAt,
                                   bytes.subspan(kFooterRestAt, kCrcAt - kFooterRestAt)));
  const Slice index{.offset_bytes = load_le<std::uint64_t>(&bytes[kIndexOffsetAt]),
                    .size_bytes = load_le<std::uint64_t>(&bytes[kIndexSizeAt])};
  BL_RETURN_IF_ERROR(check_extent(context, at, index));
  return index;
}

Status check_padding(const ObjectPart& part, std::uint64_t offset_bytes, ByteSpan padding) {
  const auto bad =
      std::ranges::find_if(padding, [](std::byte byte) { return byte != std::byte{}; });
  if (bad == padding.end()) return Status::ok();
  return corrupt_at(part, offset_bytes + static_cast<std::uint64_t>(bad - padding.begin()),
                    "padding is not zero");
}

Status check_encoding(const ObjectPart& part, std::uint64_t offset_bytes, std::uint8_t width,
                      std::uint8_t codec) {
  if (codec != static_cast<std::uint8_t>(Codec::kRaw)) {
    return newer_at(
        part, offset_bytes,
        fmt::format("columns are encoded with codec {}, this build reads only raw ones (0)",
                    codec));
  }
  if (is_token_width(width)) return Status::ok();
  return corrupt_at(part, offset_bytes,
                    fmt::format("token ids of {} bytes; 2 or 4 are possible", width));
}

}  // namespace batchloom::store
