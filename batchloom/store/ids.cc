// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/ids.h"

#include <fmt/format.h>

namespace batchloom::store {

std::string StreamUuid::to_string() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text.push_back(kDigits[std::to_integer<unsigned>(byte >> 4)]);
    text.push_back(kDigits[std::to_integer<unsigned>(byte & std::byte{15})]);
  }
  return text;
}

std::string MembershipDigest::to_string() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace batchloom::store
