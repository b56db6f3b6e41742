// SPDX-License-Identifier: Apache-2.0
// A batch object from outside, and what stands at its two ends:
//
//   header | run table | runs, rank by rank | index | footer
//
// A rank needs none of it but its run: these serve the readers of the index, and say whose object
// it is and whether all of it is there. The bytes: docs/formats/batch_object.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/ids.h"

namespace batchloom::store {

/// Bytes of a stored token id; one width per object.
enum class TokenWidth : std::uint8_t { k16 = 2, k32 = 4 };

constexpr std::size_t token_bytes(TokenWidth width) {
  return static_cast<std::size_t>(width);
}
constexpr bool is_token_width(std::uint8_t bytes) {
  return bytes == 2 || bytes == 4;
}

/// How columns are encoded. Part of the format: never renumber.
enum class Codec : std::uint8_t { kRaw = 0 };

/// Whose object it is; every run states it again.
struct BatchIdentity {
  StreamUuid stream;
  std::string producer;
  Term term;
  Seq seq;
  friend bool operator==(const BatchIdentity&, const BatchIdentity&) = default;
};

/// "batch 7 of p in term 3".
std::string to_string(const BatchIdentity& identity);

/// What a reader knows of an object before it reads it: what the entry says.
struct BatchContext {
  std::string_view key;  ///< For messages.
  BatchIdentity identity;
  std::uint32_t steps = 1;
  std::uint32_t ranks = 1;
  std::uint64_t size_bytes = 0;
};

/// Bytes [offset_bytes, + size_bytes) of an object.
struct Slice {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t end() const { return offset_bytes + size_bytes; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

inline constexpr std::size_t kBatchHeaderBytes = 64;
inline constexpr std::size_t kBatchFooterBytes = 64;

/// Runs, their columns and the index begin at multiples of this; the gaps are zeros.
inline constexpr std::uint64_t kColumnAlignBytes = 64;
constexpr std::uint64_t column_aligned(std::uint64_t offset_bytes) {
  return (offset_bytes + kColumnAlignBytes - 1) / kColumnAlignBytes * kColumnAlignBytes;
}

/// No object has more runs (ranks x steps): its table would not fit into memory.
inline constexpr std::uint64_t kRunsMax = std::uint64_t{1} << 26;

/// The first 64 bytes.
struct BatchHeader {
  TokenWidth token_width = TokenWidth::k32;
  std::uint64_t payload_bytes = 0;  ///< Of tokens, look-ahead, label intervals and tensors alone.
};

/// `context` says the rest; its size and key are not used.
Bytes encode_batch_header(const BatchContext& context, const BatchHeader& header);
/// `bytes` are the object's first. Checks the CRC, then that the object is the one meant.
/// `corruption`, or `invalid` for a version or codec from the future, naming key and offset.
Result<BatchHeader> decode_batch_header(const BatchContext& context, ByteSpan bytes);

Bytes encode_batch_footer(const StreamUuid& stream, Slice index);
/// Where the index lies. `bytes` are the object's last. Errors as of the header.
Result<Slice> decode_batch_footer(const BatchContext& context, ByteSpan bytes);

/// Ok where the bytes are zeros, as padding is; they stand at `offset_bytes` of the part.
Status check_padding(const ObjectPart& part, std::uint64_t offset_bytes, ByteSpan padding);

/// Ok, or `corruption` for a width that is none, or `invalid` for a codec from the future.
Status check_encoding(const ObjectPart& part, std::uint64_t offset_bytes, std::uint8_t width,
                      std::uint8_t codec);

}  // namespace batchloom::store
