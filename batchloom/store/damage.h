// SPDX-License-Identifier: Apache-2.0
// How errors about stored objects read: "<key>: at byte <offset>: <reason>". All of them in this
// module are made here, so that none lacks its place.
//
// The byte is where the reader found out, counted from the object's begin. For a rule about an
// object as a whole, or about two that do not agree, it is byte 0. An object that is missing has no
// bytes: "<key>: missing, <reason>".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"

namespace batchloom::store {

/// An object, or a part of it with a name of its own.
struct ObjectPart {
  std::string_view key;
  std::string_view name = {};     ///< "index"; empty for the whole object.
  std::uint64_t begin_bytes = 0;  ///< Offsets in the part count from here.
};

/// The text alone.
std::string damage_text(const ObjectPart& part, std::uint64_t offset_bytes,
                        std::string_view reason);
inline std::string damage_text(std::string_view key, std::uint64_t offset_bytes,
                               std::string_view reason) {
  return damage_text(ObjectPart{.key = key}, offset_bytes, reason);
}

/// `corruption` at that byte of the part.
Status corrupt_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view reason);
inline Status corrupt_at(std::string_view key, std::uint64_t offset_bytes,
                         std::string_view reason) {
  return corrupt_at(ObjectPart{.key = key}, offset_bytes, reason);
}

/// `invalid`: what stands there is of a format version that this build does not read: a later one,
/// or 0, that of drafts.
Status unknown_version_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view what,
                          std::uint16_t version);
/// `invalid`: what stands there is only in later versions of the format.
Status newer_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view reason);
inline Status newer_at(std::string_view key, std::uint64_t offset_bytes, std::string_view reason) {
  return newer_at(ObjectPart{.key = key}, offset_bytes, reason);
}

/// `corruption`: the object is not there, though `reason`.
Status missing_object(std::string_view key, std::string_view reason);

/// What is wrong with an object of `actual` bytes, which is to have `expected` of them, says
/// `reference` ("its entry"). The byte is where it ends, or where it should have ended.
/// Precondition: the sizes differ.
Status wrong_size(std::string_view key, std::uint64_t actual, std::uint64_t expected,
                  std::string_view reference);

}  // namespace batchloom::store
