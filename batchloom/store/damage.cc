// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/damage.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/frame.h"

namespace batchloom::store {

std::string damage_text(const ObjectPart& part, std::uint64_t offset_bytes,
                        std::string_view reason) {
  return fmt::format("{}: at byte {}: {}{}{}", part.key, part.begin_bytes + offset_bytes, part.name,
                     part.name.empty() ? "" : ": ", reason);
}

Status corrupt_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view reason) {
  return Status::corruption(damage_text(part, offset_bytes, reason));
}

Status newer_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view reason) {
  return Status::invalid(damage_text(part, offset_bytes, reason) + ": upgrade batchloom");
}

Status unknown_version_at(const ObjectPart& part, std::uint64_t offset_bytes, std::string_view what,
                          std::uint16_t version) {
  if (version > kFormatVersion) {
    return newer_at(part, offset_bytes,
                    fmt::format("{} has format version {}, this build reads up to {}", what,
                                version, kFormatVersion));
  }
  return Status::invalid(damage_text(
      part, offset_bytes,
      fmt::format("{} has format version {}, a draft of version {}: make the stream anew", what,
                  version, kFormatVersion)));
}

Status missing_object(std::string_view key, std::string_view reason) {
  return Status::corruption(fmt::format("{}: missing, {}", key, reason));
}

Status wrong_size(std::string_view key, std::uint64_t actual, std::uint64_t expected,
                  std::string_view reference) {
  const std::string_view what = actual == 0         ? "the object is empty"
                                : actual < expected ? "truncated"
                                                    : "too long";
  return corrupt_at(
      key, std::min(actual, expected),
      fmt::format("{}: it has {} bytes, {} says {}", what, actual, reference, expected));
}

}  // namespace batchloom::store
