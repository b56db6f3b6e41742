// SPDX-License-Identifier: Apache-2.0
// How much a row can add to an encoded head. FlatBuffers writes each table as an offset to its
// vtable (4 bytes; the few vtables are shared and stand in kHeadFixedBytes) and its fields, aligned
// to 8; the vector around it adds the offset to the table (4). encode_head forces defaults, so that
// all rows of one shape take the same space. Names are counted per row, though rows share them.
#include "batchloom/store/codec.h"

namespace batchloom::store {
namespace {

constexpr std::size_t kOffsetBytes = 4;
constexpr std::size_t kTableBytes = 2 * kOffsetBytes;  // Its offset in the vector, and its vtable.
constexpr std::size_t kPadBytes = 4;                   // All parts are multiples of 4.

constexpr std::size_t rounded_up(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

/// A length and bytes, and the offset to them.
constexpr std::size_t vector_bound(std::size_t size) {
  return 2 * kOffsetBytes + rounded_up(size);
}

/// As a vector, with a zero at the end.
constexpr std::size_t string_bound(const std::string& text) {
  return vector_bound(text.size() + 1);
}

}  // namespace

std::size_t encoded_bound(const Entry& entry) {
  constexpr std::size_t kFieldBytes = 5 * 8 + 3 * 4;
  const std::size_t row = kTableBytes + kFieldBytes + string_bound(entry.producer);
  if (entry.run_table.empty()) return row;
  return row + vector_bound(entry.run_table.size()) + 2 * kPadBytes;
}

std::size_t encoded_bound(const ProducerRow& row) {
  constexpr std::size_t kFieldBytes = 3 * 8 + 2 * 4;  // `finished` is padded to 4.
  // A row must not outgrow its budget when its state does: a reference takes more than what an
  // inline state needs besides its bytes (its offset, its length, and up to 11 bytes of padding).
  constexpr std::size_t kStateRefBytes = 32;
  return kTableBytes + kFieldBytes + kStateRefBytes + kPadBytes + string_bound(row.producer);
}

std::size_t encoded_bound(const SegmentRef&) {
  return 32;
}

std::size_t encoded_bound(const TopologyRow& row) {
  constexpr std::size_t kFieldBytes = 8 + 4;
  return kTableBytes + kFieldBytes + string_bound(row.axes) + kPadBytes;
}

std::size_t encoded_bound(const MembershipRow& row) {
  constexpr std::size_t kFieldBytes = 8 + 16 + 8 + 4;
  constexpr std::size_t kRefBytes = 24;
  const std::size_t keys = row.ref ? kRefBytes : vector_bound(row.inline_keys.size());
  return kTableBytes + kFieldBytes + keys + 2 * kPadBytes + string_bound(row.producer);
}

std::size_t encoded_bound(Step) {
  return 8;
}

}  // namespace batchloom::store
