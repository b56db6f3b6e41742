// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/store/damage.h"

namespace batchloom::store {
namespace {

/// "tokens [0, 7) of sample 0:0:1:0".
std::string describe(const RunPieceRow& row) {
  return fmt::format("tokens [{}, {}) of sample {}", row.lo, row.hi, to_string(row.sample));
}

Result<std::vector<LabelInterval>> decode_labels(const StoredPiece& piece, ByteSpan bytes) {
  const std::uint32_t existing =
      existing_labels(piece.row.tokens(), piece.row.facts.has_next_token);
  std::vector<LabelInterval> labels;
  labels.reserve(bytes.size() / kLabelIntervalBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kLabelIntervalBytes) {
    const LabelInterval interval{.begin = load_le<std::uint32_t>(&bytes[at]),
                                 .end = load_le<std::uint32_t>(&bytes[at + 4])};
    const bool apart = labels.empty() || labels.back().end < interval.begin;
    if (!apart || interval.begin >= interval.end || interval.end > existing) {
      return corrupt_at(piece.place, piece.slices.labels.offset_bytes + at,
                        fmt::format("{} count labels [{}, {}) of {}, out of order or beyond",
                                    describe(piece.row), interval.begin, interval.end, existing));
    }
    labels.push_back(interval);
  }
  return labels;
}

}  // namespace

Result<RunPiece> verify_piece(const StoredPiece& piece,
                              const std::function<ByteSpan(const Slice&)>& bytes_of) {
  const RunPieceRow& row = piece.row;
  std::uint32_t crc = 0;
  piece.slices.for_each([&](const Slice& slice) { crc = crc32c(bytes_of(slice), crc); });
  if (crc != row.facts.crc) {
    return corrupt_at(
        piece.place, piece.slices.tokens.offset_bytes,
        fmt::format("damaged {}: the CRC-32C of tokens, look-ahead, labels and tensors is {:08x}, "
                    "stored {:08x}",
                    describe(row), crc, row.facts.crc));
  }
  RunPiece verified;
  verified.sample = row.sample;
  verified.sample_tokens = row.sample_tokens;
  verified.lo = row.lo;
  verified.hi = row.hi;
  verified.first_position = row.first_position;
  verified.has_next_token = row.facts.has_next_token;
  verified.crc = crc;
  verified.tokens = bytes_of(piece.slices.tokens);
  verified.next_token = bytes_of(piece.slices.next_token);
  verified.all_labels = row.facts.all_labels;
  if (!verified.has_next_token) {
    const auto zero = [](std::byte byte) { return byte == std::byte{}; };
    if (!std::ranges::all_of(verified.next_token, zero)) {
      return corrupt_at(
          piece.place, piece.slices.next_token.offset_bytes,
          fmt::format("{} are followed by no token, and by one that is not 0", describe(row)));
    }
  }
  BL_ASSIGN_OR_RETURN(verified.labels, decode_labels(piece, bytes_of(piece.slices.labels)));
  for (std::size_t i = 0; i < piece.tensors.size(); ++i) {
    verified.tensors.push_back({.token = piece.tensors[i].token,
                                .info = piece.tensors[i].info,
                                .bytes = bytes_of(piece.slices.tensors[i])});
  }
  return verified;
}

}  // namespace batchloom::store
