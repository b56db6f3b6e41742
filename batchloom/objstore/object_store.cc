// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/object_store.h"

#include <fmt/format.h>

namespace batchloom::objstore {
namespace {

constexpr std::size_t kMaxKeyBytes = 1000;

bool is_key_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

Status validate_key(std::string_view key) {
  if (key.empty()) return Status::invalid("object key is empty; name an object");
  if (key.size() > kMaxKeyBytes) {
    return Status::invalid(fmt::format("object key '{}...' has {} bytes; at most {} are allowed",
                                       key.substr(0, 40), key.size(), kMaxKeyBytes));
  }
  bool segment_starts = true;
  for (const char c : key) {
    if (c == '/') {
      if (segment_starts) {
        return Status::invalid(fmt::format("object key '{}' has an empty segment", key));
      }
      segment_starts = true;
      continue;
    }
    if (!is_key_char(c)) {
      return Status::invalid(fmt::format("object key '{}' has byte {:#04x}; use [A-Za-z0-9._-/]",
                                         key, static_cast<unsigned char>(c)));
    }
    if (segment_starts && c == '.') {
      return Status::invalid(
          fmt::format("object key '{}' has a segment that begins with a dot", key));
    }
    segment_starts = false;
  }
  if (segment_starts) {
    return Status::invalid(fmt::format("object key '{}' ends with an empty segment", key));
  }
  return Status::ok();
}

}  // namespace batchloom::objstore
