// SPDX-License-Identifier: Apache-2.0
// The keys of a stream, relative to its root: how each is spelled and read back.
//
//   FORMAT                                        created once
//   m/<slot:020>                                  manifest head
//   s/<slot:020>-<level>-<rand64>                 index segment, written for that slot only
//   d/<hh>/<producer>.<term:012>.<seq:012>.<rand64>.tgb     batch object
//   d/<hh>/<producer>.<term:012>.<seq:012>.<rand64>.state   producer state too large for the head
//   d/<hh>/<producer>.<term:012>.<seq:012>.<rand64>.membership      membership keys, likewise
//   pin/<group>/<id>-<rand64>                     checkpoint pin
//   pin/<group>/live                              live cursor
//   gc/floor                                      at or below this slot nothing counts
//
// Numbers are decimal and padded with zeros to at least the width given; rand64 is 16 lower-case
// hexadecimal digits, hh its first two.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/store/ids.h"

namespace batchloom::store {

inline constexpr std::string_view kFormatKey = "FORMAT";
inline constexpr std::string_view kFloorKey = "gc/floor";
inline constexpr std::string_view kManifestPrefix = "m/";
inline constexpr std::string_view kSegmentPrefix = "s/";
inline constexpr std::string_view kDataPrefix = "d/";
inline constexpr std::string_view kPinPrefix = "pin/";

/// What a key under d/ names.
enum class DataKind : std::uint8_t { kBatch, kState, kMembership };

/// The name of an object under d/. A value.
struct DataName {
  DataKind kind = DataKind::kBatch;
  std::string producer;
  Term term;
  Seq seq;
  Nonce nonce;

  friend bool operator==(const DataName&, const DataName&) = default;
};

/// The name of an index segment. A value.
struct SegmentName {
  Slot slot;
  std::uint32_t level = 0;
  Nonce nonce;

  friend bool operator==(const SegmentName&, const SegmentName&) = default;
};

/// The name of a pin. A value, ordered by group, id and nonce.
struct PinName {
  std::string group;
  std::string id;  ///< May contain '-': what follows the last one in the key is the nonce.
  Nonce nonce;

  friend auto operator<=>(const PinName&, const PinName&) = default;
};

std::string manifest_key(Slot slot);
std::string segment_key(const SegmentName& name);
std::string data_key(const DataName& name);
std::string pin_key(const PinName& name);
std::string live_cursor_key(std::string_view group);

/// The inverse of the functions above; nullopt for anything that they would not have written.
std::optional<Slot> parse_manifest_key(std::string_view key);
std::optional<SegmentName> parse_segment_key(std::string_view key);
std::optional<DataName> parse_data_key(std::string_view key);
std::optional<PinName> parse_pin_key(std::string_view key);
/// The group.
std::optional<std::string> parse_live_cursor_key(std::string_view key);

/// What the keys of a group's pins and of its live cursor begin with, and no others.
std::string group_prefix(std::string_view group);

/// Whether producers, groups and pins may be called so: [a-z0-9][a-z0-9_-]{0,62}.
bool is_name(std::string_view name);
/// Ok, or `invalid` naming `what`, unless `is_name(name)`.
Status validate_name(std::string_view what, std::string_view name);

}  // namespace batchloom::store
